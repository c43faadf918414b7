// Command jetstream-load runs one scenario of bench/jetstream.py against a server with JetStream.
//
// It prints `begin` when counting begins, and a line of JSON at the end: operations, seconds, and for some scenarios
// the median and the 99th percentile of a single operation in microseconds.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"slices"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	name    = "load"
	subject = "load.a"
	bucket  = "load"
)

var (
	url     = flag.String("url", nats.DefaultURL, "the server")
	count   = flag.Int("count", 100_000, "messages or operations")
	seconds = flag.Float64("seconds", 5, "time of scenarios that are limited by time")
	size    = flag.Int("size", 1024, "bytes of a body")
	readers = flag.Int("readers", 100, "readers at the end of the stream")
	rate    = flag.Int("rate", 500, "messages a second for readers at the end of the stream")
	pending = flag.Int("pending", 4096, "publishes without an acknowledgement")
)

// result is what a scenario reports.
type result struct {
	Operations int     `json:"operations"`
	Seconds    float64 `json:"seconds"`
	P50        float64 `json:"p50_us,omitempty"`
	P99        float64 `json:"p99_us,omitempty"`
}

// scenario prepares, calls `begin`, and works.
type scenario func(ctx context.Context, js jetstream.JetStream, begin func()) result

var scenarios = map[string]scenario{
	"publish-async": publishAsync,
	"publish":       publish,
	"consume":       consume,
	"tail":          tail,
	"kv-put":        kvPut,
	"kv-get":        kvGet,
}

func main() {
	flag.Parse()
	run, found := scenarios[flag.Arg(0)]
	if !found {
		log.Fatalf("`%s` is no scenario", flag.Arg(0))
	}
	connection := must(nats.Connect(*url))
	js := must(jetstream.New(connection, jetstream.WithPublishAsyncMaxPending(*pending)))
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Minute)
	defer cancel()
	measured := run(ctx, js, func() { fmt.Println("begin") })
	check(json.NewEncoder(os.Stdout).Encode(measured))
}

// publishAsync publishes with many acknowledgements outstanding.
func publishAsync(ctx context.Context, js jetstream.JetStream, begin func()) result {
	stream(ctx, js)
	begin()
	return timed(*count, func() { fill(js, *count) })
}

// publish publishes one message at a time.
func publish(ctx context.Context, js jetstream.JetStream, begin func()) result {
	stream(ctx, js)
	body := make([]byte, *size)
	begin()
	return oneByOne(func(int) { must(js.Publish(ctx, subject, body)) })
}

// consume reads a full stream, and acknowledges each message.
func consume(ctx context.Context, js jetstream.JetStream, begin func()) result {
	made := stream(ctx, js)
	fill(js, *count)
	config := jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy, MaxAckPending: 10_000}
	consumer := must(made.CreateConsumer(ctx, config))
	begin()
	return timed(*count, func() {
		var got atomic.Int64
		done := make(chan struct{})
		reading := must(consumer.Consume(func(message jetstream.Msg) {
			check(message.Ack())
			if got.Add(1) == int64(*count) {
				close(done)
			}
		}))
		<-done
		reading.Stop()
		for must(consumer.Info(ctx)).NumAckPending > 0 {
			time.Sleep(time.Millisecond)
		}
	})
}

// tail publishes at a rate to a stream at whose end many ordered consumers read.
func tail(ctx context.Context, js jetstream.JetStream, begin func()) result {
	made := stream(ctx, js)
	var got atomic.Int64
	for range *readers {
		consumer := must(made.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{}))
		must(consumer.Consume(func(jetstream.Msg) { got.Add(1) }))
	}
	time.Sleep(time.Second)
	total := int(*seconds * float64(*rate))
	body := make([]byte, *size)
	begin()
	return timed(total**readers, func() {
		start := time.Now()
		for sent := range total {
			time.Sleep(time.Until(start.Add(time.Duration(sent) * time.Second / time.Duration(*rate))))
			must(js.PublishAsync(subject, body))
		}
		for got.Load() < int64(total**readers) {
			time.Sleep(time.Millisecond)
		}
	})
}

// kvPut puts values of 1,000 keys, one at a time.
func kvPut(ctx context.Context, js jetstream.JetStream, begin func()) result {
	store := must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket}))
	body := make([]byte, *size)
	begin()
	return oneByOne(func(turn int) { must(store.Put(ctx, key(turn), body)) })
}

// kvGet gets values of 1,000 keys, one at a time.
func kvGet(ctx context.Context, js jetstream.JetStream, begin func()) result {
	store := must(js.CreateKeyValue(ctx, jetstream.KeyValueConfig{Bucket: bucket}))
	body := make([]byte, *size)
	for turn := range 1_000 {
		must(store.Put(ctx, key(turn), body))
	}
	begin()
	return oneByOne(func(turn int) { must(store.Get(ctx, key(turn))) })
}

func key(turn int) string { return fmt.Sprintf("key.%d", turn%1_000) }

func stream(ctx context.Context, js jetstream.JetStream) jetstream.Stream {
	return must(js.CreateStream(ctx, jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}}))
}

// fill publishes, and waits until all is acknowledged.
func fill(js jetstream.JetStream, count int) {
	body := make([]byte, *size)
	futures := make([]jetstream.PubAckFuture, 0, count)
	for range count {
		futures = append(futures, must(js.PublishAsync(subject, body, jetstream.WithStallWait(time.Minute))))
	}
	<-js.PublishAsyncComplete()
	for _, future := range futures {
		select {
		case <-future.Ok():
		case err := <-future.Err():
			log.Fatal(err)
		}
	}
}

func timed(operations int, work func()) result {
	start := time.Now()
	work()
	return result{Operations: operations, Seconds: time.Since(start).Seconds()}
}

// oneByOne repeats an operation for the time of the scenario.
func oneByOne(operation func(turn int)) result {
	var took []time.Duration
	start := time.Now()
	for turn := 0; time.Since(start).Seconds() < *seconds; turn++ {
		begin := time.Now()
		operation(turn)
		took = append(took, time.Since(begin))
	}
	passed := time.Since(start).Seconds()
	slices.Sort(took)
	at := func(share float64) float64 {
		return float64(took[int(share*float64(len(took)-1))].Nanoseconds()) / 1_000
	}
	return result{Operations: len(took), Seconds: passed, P50: at(0.5), P99: at(0.99)}
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
