// Scenarios of nats.go's package jetstream with a broker.
//
//	driver-jetstream SCENARIO URL NAME
//
// A scenario ends well by returning; whatever is wrong panics. Waiting is always for an event.
package main

import (
	"context"
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// deadline is when to give up on an event that must come; it decides nothing else.
const deadline = 100 * time.Second

var url, name = os.Args[2], os.Args[3]

var scenarios = map[string]func(run run){
	"create_and_delete": createAndDelete,
	"publish":           publish,
	"publish_async":     publishAsync,
	"consume":           consume,
	"messages":          messages,
	"fetch":             fetch,
	"acknowledgements":  acknowledgements,
	"ordered_consumer":  orderedConsumer,
	"two_consumers":     twoConsumers,
	"push_consumer":     pushConsumer,
	"key_value":         keyValue,
	"key_value_watch":   keyValueWatch,
	"object_store":      objectStore,
	"errors":            errorsOfTheBroker,
	"old_package":       oldPackage,
}

// run is what each scenario needs.
type run struct {
	context    context.Context
	connection *nats.Conn
	js         jetstream.JetStream
}

func main() {
	scenario, known := scenarios[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown scenario `%s`\n", os.Args[1])
		os.Exit(2)
	}
	context, cancel := context.WithTimeout(context.Background(), deadline)
	defer cancel()
	strict := nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { panic(err) })
	connection := must(nats.Connect(url, strict, nats.Timeout(deadline)))
	scenario(run{context, connection, must(jetstream.New(connection))})
	connection.Close()
}

// stream creates the stream of all subjects below the name.
func (run run) stream() jetstream.Stream {
	config := jetstream.StreamConfig{Name: name, Subjects: []string{name + ".>"}}
	return must(run.js.CreateStream(run.context, config))
}

// filled creates the stream with messages "0" to count - 1 in one subject.
func (run run) filled(count int) jetstream.Stream {
	stream := run.stream()
	for number := range count {
		must(run.js.PublishAsync(name+".a", fmt.Append(nil, number)))
	}
	wait(run.js.PublishAsyncComplete())
	return stream
}

// consumer creates a durable pull consumer with explicit acknowledgements.
func (run run) consumer(stream jetstream.Stream) jetstream.Consumer {
	config := jetstream.ConsumerConfig{Durable: "reader", AckPolicy: jetstream.AckExplicitPolicy}
	return must(stream.CreateOrUpdateConsumer(run.context, config))
}

func must[T any](value T, err error) T {
	check(err)
	return value
}

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func equal(actual, expected any) {
	if !reflect.DeepEqual(actual, expected) {
		panic(fmt.Sprintf("%#v instead of %#v", actual, expected))
	}
}

func wait[T any](channel <-chan T) T {
	select {
	case value := <-channel:
		return value
	case <-time.After(deadline):
		panic("an event did not come")
	}
}
