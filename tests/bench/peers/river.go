// River: river drain|pickup DSN ITEMS WORKERS. Prints the names of the phases, waits each time for a line on standard
// input, and prints one JSON object.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"sort"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/riverqueue/river"
	"github.com/riverqueue/river/riverdriver/riverpgxv5"
	"github.com/riverqueue/river/rivermigrate"
)

type Nothing struct {
	At int64 `json:"at"`
}

func (Nothing) Kind() string { return "nothing" }

type Worker struct {
	river.WorkerDefaults[Nothing]
	done    *atomic.Int64
	pickups chan float64
}

func (w *Worker) Work(_ context.Context, job *river.Job[Nothing]) error {
	if w.pickups != nil {
		w.pickups <- float64(time.Now().UnixNano()-job.Args.At) / 1e6
	}
	w.done.Add(1)
	return nil
}

func must[T any](value T, err error) T {
	if err != nil {
		fmt.Fprintln(os.Stderr, "river:", err)
		os.Exit(1)
	}
	return value
}

var input = bufio.NewReader(os.Stdin)

func beginPhase(name string) {
	fmt.Println(name)
	_, _ = input.ReadString('\n')
}

func main() {
	ctx := context.Background()
	what, dsn := os.Args[1], os.Args[2]
	items, workers := must(strconv.Atoi(os.Args[3])), must(strconv.Atoi(os.Args[4]))
	settings := must(pgxpool.ParseConfig(dsn))
	settings.MaxConns = 16
	pool := must(pgxpool.NewWithConfig(ctx, settings))
	defer pool.Close()
	migrator := must(rivermigrate.New(riverpgxv5.New(pool), nil))
	must(migrator.Migrate(ctx, rivermigrate.DirectionUp, nil))

	worker := &Worker{done: &atomic.Int64{}}
	if what == "pickup" {
		worker.pickups = make(chan float64, 1)
	}
	registry := river.NewWorkers()
	river.AddWorker(registry, worker)
	// Documented for throughput: the shortest cooldown between fetches, many workers (its own `river bench`: 2,000).
	client := must(river.NewClient(riverpgxv5.New(pool), &river.Config{
		FetchCooldown:     2 * time.Millisecond,
		FetchPollInterval: 20 * time.Millisecond,
		Queues:            map[string]river.QueueConfig{river.QueueDefault: {MaxWorkers: workers}},
		Workers:           registry,
		Logger:            slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError})),
	}))
	answer := map[string]float64{"items": float64(items)}

	if what == "pickup" {
		if err := client.Start(ctx); err != nil {
			must(0, err)
		}
		time.Sleep(500 * time.Millisecond) // so that it is idle and listens
		samples := []float64{}
		for i := 0; i < items; i++ {
			must(client.Insert(ctx, Nothing{At: time.Now().UnixNano()}, nil))
			samples = append(samples, <-worker.pickups)
			time.Sleep(20 * time.Millisecond)
		}
		sort.Float64s(samples)
		answer["p50_ms"], answer["p99_ms"] = samples[len(samples)/2], samples[len(samples)*99/100]
	} else {
		beginPhase("enqueue")
		from := time.Now()
		for left := items; left > 0; {
			batch := []river.InsertManyParams{}
			for i := 0; i < 10000 && i < left; i++ {
				batch = append(batch, river.InsertManyParams{Args: Nothing{}})
			}
			must(client.InsertManyFast(ctx, batch))
			left -= len(batch)
		}
		answer["enqueue_seconds"] = time.Since(from).Seconds()
		beginPhase("rest")
		must(pool.Exec(ctx, "analyze", pgx.QueryExecModeSimpleProtocol))
		beginPhase("drain")
		from = time.Now()
		if err := client.Start(ctx); err != nil {
			must(0, err)
		}
		for worker.done.Load() < int64(items) {
			time.Sleep(2 * time.Millisecond)
		}
		// Done means settled in the database too, which its completer does in batches.
		for must(count(ctx, pool)) > 0 {
			time.Sleep(5 * time.Millisecond)
		}
		answer["seconds"] = time.Since(from).Seconds()
	}
	if err := client.StopAndCancel(ctx); err != nil {
		must(0, err)
	}
	text := must(json.Marshal(answer))
	fmt.Println(string(text))
}

func count(ctx context.Context, pool *pgxpool.Pool) (int, error) {
	var left int
	err := pool.QueryRow(ctx, "select count(*) from (select from river_job where state = 'running' limit 1) r").Scan(&left)
	return left, err
}
