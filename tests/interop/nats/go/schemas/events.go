package main

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

func streamEvents(run run) {
	run.stream("")
	run.call("stream_update", "STREAM.UPDATE."+name, streamOf(`,"max_msgs":5`))
	run.call("stream_delete", "STREAM.DELETE."+name, "")
	for _, action := range []string{"create", "modify", "delete"} {
		equal(run.event("advisory.v1.stream_action")["action"], action)
	}
}

func consumerEvents(run run) {
	run.stream("")
	run.consumer("reader", `,"ack_policy":"explicit"`)
	run.call("consumer_delete", "CONSUMER.DELETE."+name+".reader", "")
	for _, action := range []string{"create", "delete"} {
		equal(run.event("advisory.v1.consumer_action")["action"], action)
	}
}

func pauseEvents(run run) {
	run.stream("")
	run.consumer("reader", `,"ack_policy":"explicit"`)
	for _, row := range []struct {
		until  string
		paused bool
	}{{"2100-01-02T03:04:05Z", true}, {"2020-01-02T03:04:05Z", false}} {
		run.call("consumer_pause", "CONSUMER.PAUSE."+name+".reader", fmt.Sprintf(`{"pause_until":%q}`, row.until))
		equal(run.event("advisory.v1.consumer_pause")["paused"], row.paused)
	}
}

// deliveryEvents has a message that is refused, one that comes too often, and one whose acknowledgement is sampled.
func deliveryEvents(run run) {
	run.stream("")
	run.publish("a", "1")
	run.consumer("reader", `,"ack_policy":"explicit","max_deliver":2,"sample_freq":"100%"`)
	check(run.pull("reader", "").Nak())
	equal(run.event("advisory.v1.nak")["deliveries"], json.Number("1"))
	check(run.pull("reader", "").Nak())
	equal(run.event("advisory.v1.nak")["deliveries"], json.Number("2"))
	run.publish("a", "2")
	pulled := run.pull("reader", "")
	equal(string(pulled.Data), "2")
	equal(run.event("advisory.v1.max_deliver")["deliveries"], json.Number("2"))
	check(pulled.Ack())
	equal(run.event("metric.v1.consumer_ack")["stream_seq"], json.Number("2"))
	run.publish("a", "3")
	check(run.pull("reader", "").Respond([]byte("+TERM no use")))
	equal(run.event("advisory.v1.terminated")["reason"], "no use")
}

func pinEvents(run run) {
	run.stream("")
	run.publish("a", "1")
	run.consumer("reader", `,"ack_policy":"explicit","priority_policy":"pinned_client","priority_groups":["g"]`)
	pin := run.pull("reader", `{"group":"g"}`).Header.Get("Nats-Pin-Id")
	equal(run.event("advisory.v1.consumer_group_pinned")["pinned_id"], pin)
	run.call("consumer_unpin", "CONSUMER.UNPIN."+name+".reader", `{"group":"g"}`)
	equal(run.event("advisory.v1.consumer_group_unpinned")["reason"], "admin")
}

// abandonedBatch leaves out a message of a batch.
func abandonedBatch(run run) {
	run.stream(`,"allow_atomic":true`)
	message := &nats.Msg{Subject: name + ".a", Header: nats.Header{}}
	message.Header.Set("Nats-Batch-Id", "batch")
	message.Header.Set("Nats-Batch-Sequence", "1")
	must(run.connection.RequestMsg(message, deadline))
	refusal := run.publish("a", "3", "Nats-Batch-Id", "batch", "Nats-Batch-Sequence", "3")["error"].(object)
	equal(refusal["err_code"], json.Number("10176"))
	equal(run.event("advisory.v1.stream_batch_abandoned")["batch"], "batch")
}

// apiAuditEvents tell of each request, of refused ones too.
func apiAuditEvents(run run) {
	for _, verb := range []string{"STREAM.INFO.", "STREAM.PURGE.", "CONSUMER.LIST."} {
		check(run.connection.PublishRequest("$JS.API."+verb+name, run.connection.NewInbox(), nil))
	}
	run.stream("")
	seen := map[string]bool{}
	for !seen["$JS.API.STREAM.CREATE."+name] {
		seen[fmt.Sprint(run.event("advisory.v1.api_audit")["subject"])] = true
	}
}
