// What a site keeps in this browser besides cookies, in the form of Playwright's storage state. Values that JSON lacks
// are left out: a login is text.
(async () => {
  const done = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  const plain = (value) => {
    try {
      return JSON.stringify(value) !== undefined && JSON.stringify(structuredClone(value)) === JSON.stringify(value) &&
        !(value instanceof Date || value instanceof ArrayBuffer || ArrayBuffer.isView(value) || value instanceof Blob);
    } catch { return false; }
  };
  const localItems = Object.keys(localStorage).map((name) => ({name, value: localStorage.getItem(name)}));
  const databases = [];
  for (const {name, version} of await indexedDB.databases()) {
    const opened = await done(indexedDB.open(name));
    const stores = [];
    for (const storeName of opened.objectStoreNames) {
      const store = opened.transaction(storeName, 'readonly').objectStore(storeName);
      const [keys, values] = await Promise.all([done(store.getAllKeys()), done(store.getAll())]);
      const path = (of) => Array.isArray(of) ? {keyPathArray: of} : of === null ? {} : {keyPath: of};
      const records = keys.map((key, i) => store.keyPath === null ? {key, value: values[i]} : {value: values[i]});
      stores.push({name: storeName, autoIncrement: store.autoIncrement, ...path(store.keyPath),
        records: records.filter((one) => plain(one.value) && (!('key' in one) || plain(one.key))),
        indexes: [...store.indexNames].map((index) => store.index(index))
          .map((index) => ({name: index.name, ...path(index.keyPath), multiEntry: index.multiEntry, unique: index.unique}))});
    }
    opened.close();
    databases.push({name, version, stores});
  }
  return {origin: location.origin, localStorage: localItems, indexedDB: databases};
})()
