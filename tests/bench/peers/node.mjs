// graphile-worker and pg-boss: node.mjs graphile|pgboss drain|pickup DSN ITEMS WORKERS single|batch. Prints the names of
// the phases, waits each time for a line on standard input, and prints one JSON object.
import { readSync, writeSync } from "node:fs";
import { performance } from "node:perf_hooks";

const [peer, what, dsn, itemsText, workersText, mode] = process.argv.slice(2);
const items = Number(itemsText), workers = Number(workersText);
const sleep = (ms) => new Promise((go) => setTimeout(go, ms));
const answer = { items };

function percentiles(samples) {
  samples.sort((a, b) => a - b);
  answer.p50_ms = samples[Math.floor(samples.length / 2)];
  answer.p99_ms = samples[Math.floor((samples.length * 99) / 100)];
}

function beginPhase(name) {
  writeSync(1, `${name}\n`);
  readSync(0, Buffer.alloc(1));
}

async function timed(phase, name, work) {
  beginPhase(phase);
  const from = performance.now();
  await work();
  answer[name] = (performance.now() - from) / 1000;
}

// `start` begins to work and calls `seen` for every job; it returns a function that settles everything and stops.
async function pickup(start, add) {
  let arrived;
  const stop = await start((at) => arrived(performance.timeOrigin + performance.now() - at));
  await sleep(1000); // so that it is idle and listens
  const samples = [];
  for (let i = 0; i < items; i++) {
    const next = new Promise((go) => (arrived = go));
    await add(performance.timeOrigin + performance.now());
    samples.push(await next);
    await sleep(20);
  }
  await stop();
  percentiles(samples);
}

async function drain(start) {
  let done = 0, finished;
  const all = new Promise((go) => (finished = go));
  await timed("drain", "seconds", async () => {
    const stop = await start(() => ++done === items && finished());
    await all;
    await stop();
  });
}

async function graphile() {
  const { run, makeWorkerUtils, Logger } = await import("graphile-worker");
  const logger = new Logger(() => () => {});
  // Documented under "Performance": local queue, batched settling without delay.
  const batched = { localQueue: { size: 500 }, completeJobBatchDelay: 0, failJobBatchDelay: 0 };
  const worker = { connectionString: dsn, concurrentJobs: workers, maxPoolSize: workers + 2, ...(mode === "batch" ? batched : {}) };
  const start = async (seen) => {
    const runner = await run({
      preset: { worker: { ...worker, logger } }, noHandleSignals: true,
      taskList: { nothing: (payload) => void seen(payload.at) },
    });
    return () => runner.stop();
  };
  const utils = await makeWorkerUtils({ connectionString: dsn, logger });
  await utils.migrate();
  if (what === "pickup") {
    await pickup(start, (at) => utils.addJob("nothing", { at }));
  } else {
    await timed("enqueue", "enqueue_seconds", async () => {
      for (let left = items; left > 0; left -= 1000)
        await utils.addJobs(Array.from({ length: Math.min(left, 1000) }, () => ({ identifier: "nothing", payload: {} })));
    });
    beginPhase("rest");
    await utils.withPgClient((client) => client.query("analyze"));
    await drain(start);
  }
  await utils.release();
}

async function pgboss() {
  const { PgBoss } = await import("pg-boss");
  const boss = new PgBoss({ connectionString: dsn, max: workers + 2, supervise: false, schedule: false, useListenNotify: true });
  boss.on("error", (error) => console.error(String(error)));
  await boss.start();
  await boss.createQueue("nothing", { notify: what === "pickup" });
  const batchSize = mode === "batch" ? 1000 : 1;
  if (what === "pickup") {
    const start = async (seen) => {
      await boss.work("nothing", { batchSize: 1, pollingIntervalSeconds: 0.5 }, async ([job]) => seen(job.data.at));
      return async () => {};
    };
    await pickup(start, (at) => boss.send("nothing", { at }));
  } else {
    await timed("enqueue", "enqueue_seconds", async () => {
      for (let left = items; left > 0; left -= 1000)
        await boss.insert("nothing", Array.from({ length: Math.min(left, 1000) }, () => ({ data: {} })));
    });
    beginPhase("rest");
    await boss.getDb().executeSql("analyze", []);
    // fetch and complete in a loop each: its fastest documented interface, without any poll between.
    let left = items;
    await timed("drain", "seconds", () => Promise.all(Array.from({ length: workers }, async () => {
      while (left > 0) {
        const jobs = await boss.fetch("nothing", { batchSize });
        if (jobs.length === 0) { await sleep(1); continue; }
        await boss.complete("nothing", jobs.map((job) => job.id));
        left -= jobs.length;
      }
    })));
  }
  await boss.stop({ graceful: false });
}

await { graphile, pgboss }[peer]();
console.log(JSON.stringify(answer));
process.exit(0);
