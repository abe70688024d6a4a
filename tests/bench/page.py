"""A page of ten hooks, one at a time: commits and server CPU."""

import drain

HOOKS = 10


def measure(bench, figures):
    items = bench.pick(200, 800)
    for repeat in range(bench.repeats):
        for count in (1, 4):
            name = f"holdfast, {count} claimer{'s' * (count > 1)}"
            bench.say(f"page of ten hooks {repeat + 1}/{bench.repeats}: {name}")
            with figures.attempt(name):
                answer = drain.ours(bench, items * 4, count, 1, HOOKS)
                figures.add(name, "pages/s", drain.rate(answer), answer["cpu_us"])
                figures.add(name + ": server CPU of a page", "ms", answer["cpu_us"] / 1000)
                figures.add(name + ": commits of a page", "commits", answer["commits"] / answer["sealed"])
    for count in (1, 4):
        figures.target(f"holdfast, {count} claimer{'s' * (count > 1)}: commits of a page", 1.05, less=True)
