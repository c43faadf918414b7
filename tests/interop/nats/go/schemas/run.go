package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/nats-io/jsm.go/schemas"
	"github.com/nats-io/nats.go"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// object is a JSON object, whose numbers are `json.Number`.
type object = map[string]any

// run is what each scenario needs.
type run struct {
	connection *nats.Conn
	events     *nats.Subscription
	compiled   map[string]*jsonschema.Schema
}

// newRun listens to advisories before anything happens.
func newRun(connection *nats.Conn) run {
	events := must(connection.SubscribeSync("$JS.EVENT.>"))
	check(connection.Flush())
	return run{connection, events, map[string]*jsonschema.Schema{}}
}

// conform checks a document against the schema of its type, such as `io.nats.jetstream.api.v1.stream_info_response`.
func (run run) conform(kind string, text []byte) object {
	document := must(jsonschema.UnmarshalJSON(bytes.NewReader(text)))
	if run.compiled[kind] == nil {
		path := strings.ReplaceAll(strings.TrimPrefix(kind, "io.nats."), ".", "/") + ".json"
		compiler := jsonschema.NewCompiler()
		compiler.AssertFormat()
		schema := must(jsonschema.UnmarshalJSON(bytes.NewReader(must(schemas.Load(path)))))
		check(compiler.AddResource(path, schema))
		run.compiled[kind] = must(compiler.Compile(path))
	}
	violation, is := errors.AsType[*jsonschema.ValidationError](run.compiled[kind].Validate(document))
	if is && !tolerated(kind, violation) {
		panic(fmt.Sprintf("`%s` is no %s: %#v", text, kind, violation))
	}
	return document.(object)
}

// request sends a request to the API, and checks the answer, which must be a `kind`.
func (run run) request(kind, verb, body string) object {
	answer := must(run.connection.Request("$JS.API."+verb, []byte(body), deadline))
	kind = "io.nats.jetstream.api.v1." + kind + "_response"
	found := run.conform(kind, answer.Data)
	equal(found["type"], kind)
	return found
}

// call sends a request that must succeed.
func (run run) call(kind, verb, body string) object {
	found := run.request(kind, verb, body)
	if found["error"] != nil {
		panic(fmt.Sprintf("%s %s: %v", verb, body, found["error"]))
	}
	return found
}

// refused sends a request that must fail with an error code.
func (run run) refused(code int, kind, verb, body string) {
	found := run.request(kind, verb, body)
	refusal, is := found["error"].(object)
	if !is || fmt.Sprint(refusal["err_code"]) != fmt.Sprint(code) {
		panic(fmt.Sprintf("%s %s: %v instead of error %d", verb, body, found, code))
	}
}

// event waits for the next event of this type, and checks all that come until then.
func (run run) event(kind string) object {
	for {
		message := must(run.events.NextMsg(deadline))
		var typed struct{ Type string }
		check(json.Unmarshal(message.Data, &typed))
		found := run.conform(typed.Type, message.Data)
		if typed.Type == "io.nats.jetstream."+kind && ofThisRun(message.Subject, found) {
			return found
		}
	}
}

// ofThisRun tells whether an event is about the streams of this run.
func ofThisRun(subject string, event object) bool {
	return strings.Contains(subject, name) || strings.Contains(fmt.Sprint(event["subject"]), name)
}

// stream creates the stream of all subjects below the name, with further settings.
func (run run) stream(settings string) object {
	return run.call("stream_create", "STREAM.CREATE."+name, streamOf(settings))
}

// streamOf gives the configuration of the stream with further settings.
func streamOf(settings string) string {
	return fmt.Sprintf(`{"name":%q,"subjects":["%s.>"]%s}`, name, name, settings)
}

// consumer creates a consumer with further settings.
func (run run) consumer(consumer, settings string) object {
	body := consumerOf(fmt.Sprintf(`"durable_name":%q%s`, consumer, settings))
	return run.call("consumer_create", "CONSUMER.CREATE."+name+"."+consumer, body)
}

// consumerOf gives the request for a consumer with these settings.
func consumerOf(settings string) string {
	return fmt.Sprintf(`{"stream_name":%q,"config":{%s}}`, name, settings)
}

// publish stores a message, and checks the answer.
func (run run) publish(token, body string, headers ...string) object {
	message := &nats.Msg{Subject: name + "." + token, Data: []byte(body), Header: nats.Header{}}
	for at := 0; at < len(headers); at += 2 {
		message.Header.Set(headers[at], headers[at+1])
	}
	answer := must(run.connection.RequestMsg(message, deadline))
	return run.conform("io.nats.jetstream.api.v1.pub_ack_response", answer.Data)
}

// pull asks a consumer for one message.
func (run run) pull(consumer, request string) *nats.Msg {
	return must(run.connection.Request("$JS.API.CONSUMER.MSG.NEXT."+name+"."+consumer, []byte(request), deadline))
}
