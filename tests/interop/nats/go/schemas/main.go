// Answers and advisories of a broker, checked against the schemas that jsm.go publishes for them.
//
//	driver-schemas SCENARIO URL NAME
//
// A scenario ends well by returning; whatever is wrong panics. Waiting is always for an event.
package main

import (
	"fmt"
	"os"
	"reflect"
	"time"

	"github.com/nats-io/nats.go"
)

// deadline is when to give up on an event that must come; it decides nothing else.
const deadline = 100 * time.Second

var url, name = os.Args[2], os.Args[3]

var scenarios = map[string]func(run run){
	"account":          account,
	"streams":          streams,
	"stream_settings":  streamSettings,
	"copies":           copies,
	"messages":         messages,
	"direct_messages":  directMessages,
	"publish_answers":  publishAnswers,
	"consumers":        consumers,
	"pause_and_unpin":  pauseAndUnpin,
	"stream_errors":    streamErrors,
	"consumer_errors":  consumerErrors,
	"cluster_verbs":    clusterVerbs,
	"snapshots":        snapshots,
	"stream_events":    streamEvents,
	"consumer_events":  consumerEvents,
	"pause_events":     pauseEvents,
	"delivery_events":  deliveryEvents,
	"pin_events":       pinEvents,
	"abandoned_batch":  abandonedBatch,
	"api_audit_events": apiAuditEvents,
}

func main() {
	scenario, known := scenarios[os.Args[1]]
	if !known {
		fmt.Fprintf(os.Stderr, "unknown scenario `%s`\n", os.Args[1])
		os.Exit(2)
	}
	connection := must(nats.Connect(url, nats.Timeout(deadline)))
	scenario(newRun(connection))
	connection.Close()
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
