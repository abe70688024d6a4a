// localStorage and IndexedDB of an origin, in the form of Playwright's storage state. Called on an empty page of that
// origin: with an entry of "origins" it puts that in place, with null it answers with one.
async given => {
  const done = request => new Promise((yes, no) => {
    request.onsuccess = request.oncomplete = () => yes(request.result);
    request.onerror = request.onabort = request.onblocked = () => no(request.error);
  });
  const bytes = text => Uint8Array.from(atob(text), c => c.charCodeAt(0));
  const base64 = array => {
    let text = '';
    for (const byte of new Uint8Array(array.buffer, array.byteOffset, array.byteLength)) text += String.fromCharCode(byte);
    return btoa(text);
  };
  const kinds = {i8: Int8Array, ui8: Uint8Array, ui8c: Uint8ClampedArray, i16: Int16Array, ui16: Uint16Array,
    i32: Int32Array, ui32: Uint32Array, f32: Float32Array, f64: Float64Array, bi64: BigInt64Array, bui64: BigUint64Array};
  const numbers = {'NaN': NaN, 'Infinity': Infinity, '-Infinity': -Infinity, '-0': -0, 'undefined': undefined, 'null': null};

  const isPlain = value => value !== null && typeof value === 'object' &&
    [Object.prototype, null].includes(Object.getPrototypeOf(value));
  const isJson = value => value === null || ['string', 'boolean'].includes(typeof value) ||
    (typeof value === 'number' && Number.isFinite(value) && !Object.is(value, -0)) ||
    (Array.isArray(value) && value.every(isJson)) || (isPlain(value) && Object.values(value).every(isJson));
  const encode = (value, seen = new Map()) => {
    if (value === undefined) return {v: 'undefined'};
    if (value === null) return {v: 'null'};
    if (typeof value === 'number' && (!Number.isFinite(value) || Object.is(value, -0)))
      return {v: Object.is(value, -0) ? '-0' : String(value)};
    if (typeof value === 'bigint') return {bi: value.toString()};
    if (typeof value !== 'object') return value;
    if (value instanceof Date) return {d: value.toJSON()};
    if (value instanceof RegExp) return {r: {p: value.source, f: value.flags}};
    if (value instanceof ArrayBuffer) return {ab: {b: base64(new Uint8Array(value))}};
    for (const [k, kind] of Object.entries(kinds)) if (value instanceof kind) return {ta: {b: base64(value), k}};
    if (seen.has(value)) return {ref: seen.get(value)};
    const id = seen.size + 1;
    seen.set(value, id);
    if (Array.isArray(value)) return {a: value.map(one => encode(one, seen)), id};
    if (!isPlain(value)) throw new Error('a value of a kind that is not kept');
    return {o: Object.entries(value).map(([k, v]) => ({k, v: encode(v, seen)})), id};
  };
  const decode = (value, seen = new Map()) => {
    if (value === null || typeof value !== 'object') return value;
    if ('v' in value) return numbers[value.v];
    if ('bi' in value) return BigInt(value.bi);
    if ('d' in value) return new Date(value.d);
    if ('r' in value) return new RegExp(value.r.p, value.r.f);
    if ('ab' in value) return bytes(value.ab.b).buffer;
    if ('ta' in value) return new kinds[value.ta.k](bytes(value.ta.b).buffer);
    if ('ref' in value) return seen.get(value.ref);
    const made = 'a' in value ? [] : {};
    seen.set(value.id, made);
    if ('a' in value) for (const one of value.a) made.push(decode(one, seen));
    else for (const {k, v} of value.o) made[k] = decode(v, seen);
    return made;
  };
  const packed = (name, value) => isJson(value) ? {[name]: value} : {[name + 'Encoded']: encode(value)};
  const unpacked = (record, name) => name + 'Encoded' in record ? decode(record[name + 'Encoded']) : record[name];
  const path = of => Array.isArray(of) ? {keyPathArray: of} : of === null ? {} : {keyPath: of};
  const pathOf = of => of.keyPathArray ?? of.keyPath ?? null;

  const restore = async database => {
    const opening = indexedDB.open(database.name, database.version);
    opening.onupgradeneeded = () => {
      for (const store of database.stores) {
        const made = opening.result.createObjectStore(store.name, {keyPath: pathOf(store), autoIncrement: !!store.autoIncrement});
        for (const index of store.indexes ?? [])
          made.createIndex(index.name, pathOf(index), {unique: !!index.unique, multiEntry: !!index.multiEntry});
      }
    };
    const opened = await done(opening);
    const names = database.stores.map(store => store.name);
    if (names.length) {
      const transaction = opened.transaction(names, 'readwrite');
      for (const store of database.stores)
        for (const record of store.records ?? [])
          transaction.objectStore(store.name).put(
            unpacked(record, 'value'), ...(pathOf(store) === null ? [unpacked(record, 'key')] : []));
      await done(transaction);
    }
    opened.close();
  };
  const read = async ({name, version}) => {
    const opened = await done(indexedDB.open(name));
    const names = [...opened.objectStoreNames];
    const transaction = names.length ? opened.transaction(names, 'readonly') : null;
    const stores = await Promise.all(names.map(async store => {
      const from = transaction.objectStore(store);
      const [keys, values] = await Promise.all([done(from.getAllKeys()), done(from.getAll())]);
      const records = keys.flatMap((key, i) => {
        try {
          return [{...(from.keyPath === null ? packed('key', key) : {}), ...packed('value', values[i])}];
        } catch { return []; }
      });
      const indexes = [...from.indexNames].map(one => from.index(one)).map(index => (
        {name: index.name, ...path(index.keyPath), unique: index.unique, multiEntry: index.multiEntry}));
      return {name: store, ...path(from.keyPath), autoIncrement: from.autoIncrement, indexes, records};
    }));
    opened.close();
    return {name, version, stores};
  };

  if (given === null) {
    const localStorage_ = Object.keys(localStorage).sort().map(name => ({name, value: localStorage.getItem(name)}));
    const indexedDB_ = [];
    for (const database of await indexedDB.databases()) indexedDB_.push(await read(database).catch(() => null));
    return {localStorage: localStorage_, indexedDB: indexedDB_.filter(one => one)};
  }
  for (const {name, value} of given.localStorage ?? []) try { localStorage.setItem(name, value); } catch {}
  for (const database of given.indexedDB ?? []) await restore(database).catch(() => null);
  return null;
}
