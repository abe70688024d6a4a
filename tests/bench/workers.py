"""Pages a second that one database sustains with simulated workers, each with a page of ten hooks in every slot: no
process runs, so only the database and its clients cost anything."""

import drain

COUNTS = (1, 4, 16, 64)
SLOTS, PAGE_MS, HOOKS = 16, 500, 10
OFFERED = SLOTS * 1000 / PAGE_MS  # pages a second of one worker, if calls took no time
WARM_SECONDS = 2
SUSTAINED = 0.9  # of what the workers offer


def label(count):
    return f"{count} worker{'s' * (count > 1)}"


def simulate(bench, count, seconds):
    pages = int(count * OFFERED * (seconds + WARM_SECONDS) * 1.3) + count * SLOTS
    with bench.server.database(bench.filled(-(-pages // 2000) * 2000, 20)) as database:
        return bench.queue(
            "simulate",
            database,
            workers=count,
            slots=SLOTS,
            page_ms=PAGE_MS,
            hooks=HOOKS,
            warm_ms=WARM_SECONDS * 1000,
            seconds=seconds,
        )


def measure(bench, figures):
    seconds, client = bench.pick(5, 15), {}
    for repeat in range(bench.repeats):
        for count in COUNTS:
            bench.say(f"simulated workers {repeat + 1}/{bench.repeats}: {label(count)}")
            with figures.attempt(label(count)):
                answer = simulate(bench, count, seconds)
                cpu = answer["cpu"]["work"]
                figures.add(label(count), "pages/s", drain.rate(answer), cpu * 1e6 / answer["items"])
                figures.add(label(count) + ", offered", "pages/s", count * OFFERED)
                figures.add(label(count) + ": a turn, p50", "ms", answer["turn_p50_ms"])
                figures.add(label(count) + ": a turn, p99", "ms", answer["turn_p99_ms"])
                figures.add(label(count) + ": pages in a turn", "pages", answer["items"] / answer["turns"])
                client[count] = answer["client_cpu_seconds"] / seconds, cpu / seconds
    for count in COUNTS:
        figures.ratio(label(count), label(count) + ", offered")
    tell_bend(figures, client)


def tell_bend(figures, client):
    measured = [count for count in COUNTS if label(count) in figures.rows]
    points = [
        (
            count,
            *(
                pick(figures.rows[label(count)]["values"])
                for pick in (min, lambda _: figures.median(label(count)), max)
            ),
        )
        for count in measured
    ]
    figures.curves.append(
        {
            "name": "sustained",
            "title": "Pages a second, by simulated workers",
            "x": "workers",
            "y": "pages/s",
            "points": points,
            "ideal": [(count, count * OFFERED) for count in measured],
            "ideal_name": "offered",
        }
    )
    held = [count for count in measured if figures.median(label(count)) >= SUSTAINED * count * OFFERED]
    bent = [count for count in measured if count not in held]
    text = f"A worker has {SLOTS} slots; a page takes {PAGE_MS} ms, so a worker offers {OFFERED:.0f} pages/s. "
    if held and bent:
        text += f"The curve bends between {max(held)} and {min(bent)} workers"
    else:
        text += f"The curve does not bend up to {max(measured)} workers" if held else "The curve bends below 1 worker"
    text += f" (sustained: at least {SUSTAINED:.0%} of what is offered). Cores used by the simulated workers and by the server: "
    figures.notes.append(
        text + "; ".join(f"{label(count)} {own:.2f} and {server:.2f}" for count, (own, server) in client.items()) + "."
    )
