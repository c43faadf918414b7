// Command stomp-go holds the broker to what go-stomp expects: receipts, transactions, errors.
//
//	stomp-go ADDRESS NAME
package main

import (
	"errors"
	"log"
	"os"
	"time"

	"github.com/go-stomp/stomp/v3"
	"github.com/go-stomp/stomp/v3/frame"
)

const deadline = 100 * time.Second

func main() {
	log.SetFlags(0)
	address, name := os.Args[1], "/queue/"+os.Args[2]
	time.AfterFunc(deadline, func() { log.Fatal("nothing came in time") })
	acknowledge(dial(address), name+".ack")
	transact(dial(address), name+".in", name+".out")
	handle(dial(address), name+".many")
	beRefused(dial(address))
}

func dial(address string) *stomp.Conn {
	conn, err := stomp.Dial("tcp", address, stomp.ConnOpt.Login("guest", "guest"), stomp.ConnOpt.Host("/"))
	must(err)
	return conn
}

func acknowledge(conn *stomp.Conn, queue string) {
	persistent := stomp.SendOpt.Header("persistent", "true")
	must(conn.Send(queue, "text/plain", []byte("one"), stomp.SendOpt.Receipt, persistent))
	must(conn.Send(queue, "text/plain", []byte("two"), stomp.SendOpt.Receipt, persistent))
	prefetch := stomp.SubscribeOpt.Header("prefetch-count", "1")
	subscription, err := conn.Subscribe(queue, stomp.AckClientIndividual, prefetch)
	must(err)
	first := next(subscription, "one")
	must(conn.Nack(first))
	must(conn.Ack(next(subscription, "one")))
	must(conn.Ack(next(subscription, "two")))
	must(subscription.Unsubscribe())
	must(conn.Disconnect())
}

// An ACK and a SEND of one transaction count together.
func transact(conn *stomp.Conn, in, out string) {
	must(conn.Send(in, "text/plain", []byte("work"), stomp.SendOpt.Receipt))
	work, err := conn.Subscribe(in, stomp.AckClient)
	must(err)
	done, err := conn.Subscribe(out, stomp.AckAuto)
	must(err)
	message := next(work, "work")
	aborted := conn.Begin()
	must(aborted.Send(out, "text/plain", []byte("never")))
	must(aborted.Ack(message))
	must(aborted.AbortWithReceipt())
	kept := conn.Begin()
	must(kept.Send(out, "text/plain", []byte("done")))
	must(kept.Ack(message))
	must(kept.CommitWithReceipt())
	next(done, "done")
	must(conn.Disconnect())
}

// A handler that sends with a receipt does not wait for itself while many messages wait, as none is unsettled beyond
// those that the client keeps for it (docs/guides/stomp.md).
func handle(conn *stomp.Conn, queue string) {
	const count = 1000
	for range count - 1 {
		must(conn.Send(queue, "text/plain", []byte("work")))
	}
	must(conn.Send(queue, "text/plain", []byte("work"), stomp.SendOpt.Receipt))
	prefetch := stomp.SubscribeOpt.Header("prefetch-count", "16")
	work, err := conn.Subscribe(queue, stomp.AckClientIndividual, prefetch)
	must(err)
	for range count {
		message := next(work, "work")
		must(conn.Send(queue+".done", "text/plain", message.Body, stomp.SendOpt.Receipt))
		must(conn.Ack(message))
	}
	must(conn.Disconnect())
}

func beRefused(conn *stomp.Conn) {
	err := conn.Send("/queue/", "text/plain", nil, stomp.SendOpt.Receipt)
	var refusal *stomp.Error
	if !errors.As(err, &refusal) {
		var plain stomp.Error
		if !errors.As(err, &plain) {
			log.Fatalf("no refusal: %v", err)
		}
		refusal = &plain
	}
	if title := refusal.Frame.Header.Get(frame.Message); title != "Invalid destination" {
		log.Fatalf("the title is %q", title)
	}
}

func next(subscription *stomp.Subscription, body string) *stomp.Message {
	message := <-subscription.C
	must(message.Err)
	if string(message.Body) != body {
		log.Fatalf("%q came instead of %q", message.Body, body)
	}
	return message
}

func must(err error) {
	if err != nil {
		log.Fatal(err)
	}
}
