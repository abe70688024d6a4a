"""Procrastinate: procrastinate_peer.py drain|pickup DSN ITEMS WORKERS. Prints the names of the phases, waits each time
for a line on standard input, and prints one JSON object."""

import asyncio
import json
import logging
import sys
import time

import procrastinate

what, dsn, items, workers = sys.argv[1], sys.argv[2], int(sys.argv[3]), int(sys.argv[4])
logging.disable(logging.CRITICAL)
app = procrastinate.App(
    connector=procrastinate.PsycopgConnector(conninfo=dsn, min_size=2, max_size=min(workers, 20) + 2)
)
arrived = asyncio.Queue()


@app.task
async def nothing(at=None):
    if at:
        arrived.put_nowait((time.time() - at) * 1000)


def begin_phase(name):
    print(name, flush=True)
    sys.stdin.readline()


async def main():
    answer = {"items": items}
    async with app.open_async():
        await app.schema_manager.apply_schema_async()
        if what == "pickup":
            worker = asyncio.create_task(app.run_worker_async(concurrency=workers, install_signal_handlers=False))
            await asyncio.sleep(1)  # so that it is idle and listens
            samples = []
            for _ in range(items):
                await nothing.defer_async(at=time.time())
                samples.append(await arrived.get())
                await asyncio.sleep(0.02)
            worker.cancel()
            await asyncio.gather(worker, return_exceptions=True)
            samples.sort()
            answer |= {"p50_ms": samples[len(samples) // 2], "p99_ms": samples[len(samples) * 99 // 100]}
        else:
            begin_phase("enqueue")
            start = time.monotonic()
            for left in range(items, 0, -1000):
                await nothing.batch_defer_async(*({} for _ in range(min(left, 1000))))
            answer["enqueue_seconds"] = time.monotonic() - start
            begin_phase("rest")
            await app.connector.execute_query_async("analyze")
            begin_phase("drain")
            start = time.monotonic()
            # wait=False: ends as soon as the queue is empty.
            await app.run_worker_async(
                concurrency=workers,
                wait=False,
                install_signal_handlers=False,
                delete_jobs="always",
                listen_notify=False,
            )
            answer["seconds"] = time.monotonic() - start
    print(json.dumps(answer))


asyncio.run(main())
