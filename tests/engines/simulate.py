#!/usr/bin/env python3
"""simulate.py: estimates how long a sharded job takes on 1, 16 and 256 nodes, with stragglers and failures.

Shard times are drawn from measured ones (--measured; default: a spread of 5 %) and scaled to the size of a shard. A node reads
and writes through its own link, and all nodes share the store. A shard fails at a constant rate per hour and is then restarted.
When the queue is empty, unfinished shards are started a second time on the first free node, and the earlier end counts, as in
engines with speculative execution. Prints the median of several runs.
"""

import argparse, heapq, random, statistics


def simulate(random, nodes, shards, seconds, times, failures, twins):
    """Simulates one job and returns its end and the number of failures. A failed shard goes back to the queue."""
    free = [(0.0, node) for node in range(nodes)]
    heapq.heapify(free)
    queue = list(range(shards))[::-1]
    end = [None] * shards  # The earliest end among the started tries of each shard.
    lost = 0
    while True:
        now, node = heapq.heappop(free)
        if queue:
            shard = queue.pop()
        else:
            late = [s for s in range(shards) if end[s] > now]
            if not late:
                break
            if not twins:
                heapq.heappush(free, (max(end[s] for s in late), node))
                continue
            shard = max(late, key=lambda s: end[s])
        took = seconds * random.choice(times)
        fails = random.expovariate(failures / 3600) if failures else float("inf")
        if fails < took:
            lost += 1
            if end[shard] is None or end[shard] <= now:
                queue.append(shard)
                end[shard] = None
            heapq.heappush(free, (now + fails, node))
            continue
        end[shard] = min(end[shard] or float("inf"), now + took)
        heapq.heappush(free, (now + took, node))
        if not queue and all(e is not None and e <= now for e in end):
            break
        if not queue and twins and all(e is not None for e in end) and now + took >= max(end):
            break
    return max(end), lost


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--bytes", type=float, default=10e12, help="bytes of the input")
    parser.add_argument("--rate", type=float, required=True, help="measured bytes per second of one node")
    parser.add_argument("--link", type=float, default=1.25e9, help="bytes per second of the network link of a node")
    parser.add_argument("--store", type=float, default=40e9, help="bytes per second of the store, for all nodes together")
    parser.add_argument("--traffic", type=float, default=2.0, help="bytes read and written per byte of the input")
    parser.add_argument("--shards", type=int, default=4096)
    parser.add_argument("--measured", help="file with measured seconds of shards of one size, one per line")
    parser.add_argument("--slow", type=float, default=0.01, help="share of shards that take five times as long")
    parser.add_argument("--failures", type=float, default=0.02, help="failures per node and hour")
    parser.add_argument("--runs", type=int, default=9)
    args = parser.parse_args()
    times = [1 - 0.05, 1, 1 + 0.05]
    if args.measured:
        seconds = [float(line) for line in open(args.measured)]
        mean = statistics.mean(seconds)
        times = [second / mean for second in seconds]
    fast = len(times)
    # Enough copies of the list that one slow shard among them has the share --slow.
    copies = max(1, round(1 / args.slow / fast)) if args.slow else 1
    times = times * copies + ([5.0] if args.slow else [])
    print(f"{'nodes':>5} {'bound by':>8} {'ideal':>9} {'median':>9} {'no twins':>9} {'failed':>6}")
    for nodes in (1, 16, 256):
        rates = {"cores": args.rate, "link": args.link / args.traffic, "store": args.store / args.traffic / nodes}
        bound = min(rates, key=rates.get)
        seconds = args.bytes / args.shards / rates[bound]
        ideal = args.bytes / (rates[bound] * nodes)
        both = [
            [simulate(random.Random(n), nodes, args.shards, seconds, times, args.failures, twins) for n in range(args.runs)]
            for twins in (True, False)
        ]
        median = [statistics.median(end for end, _ in runs) for runs in both]
        failed = statistics.median(lost for _, lost in both[0])
        show = lambda s: f"{s / 3600:.2f} h" if s > 5400 else f"{s / 60:.1f} min"
        print(f"{nodes:5} {bound:>8} {show(ideal):>9} {show(median[0]):>9} {show(median[1]):>9} {failed:6.0f}")


if __name__ == "__main__":
    main()
