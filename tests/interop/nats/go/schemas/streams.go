package main

import (
	"encoding/json"
	"fmt"

	"github.com/nats-io/nats.go"
)

func account(run run) {
	run.call("account_info", "INFO", "")
	run.stream("")
	run.consumer("reader", `,"ack_policy":"explicit"`)
	run.publish("a", "1")
	found := run.call("account_info", "INFO", "")
	equal(found["streams"] != json.Number("0"), true)
}

func streams(run run) {
	created := run.stream("")
	equal(created["config"].(object)["name"], name)
	run.stream("")
	run.publish("a", "1")
	run.publish("b", "2")
	run.call("stream_update", "STREAM.UPDATE."+name, streamOf(`,"max_msgs":100`))
	run.call("stream_info", "STREAM.INFO."+name, "")
	found := run.call("stream_info", "STREAM.INFO."+name, `{"subjects_filter":">","deleted_details":true}`)
	equal(found["state"].(object)["subjects"], object{name + ".a": json.Number("1"), name + ".b": json.Number("1")})
	run.call("stream_names", "STREAM.NAMES", "")
	found = run.call("stream_names", "STREAM.NAMES", fmt.Sprintf(`{"subject":"%s.a"}`, name))
	equal(found["streams"], []any{name})
	run.call("stream_names", "STREAM.NAMES", `{"offset":1000}`)
	run.call("stream_list", "STREAM.LIST", "")
	run.call("stream_list", "STREAM.LIST", fmt.Sprintf(`{"subject":"%s.a"}`, name))
	run.call("stream_list", "STREAM.LIST", `{"offset":1000}`)
	purged := run.call("stream_purge", "STREAM.PURGE."+name, fmt.Sprintf(`{"filter":"%s.a"}`, name))
	equal(purged["purged"], json.Number("1"))
	run.call("stream_purge", "STREAM.PURGE."+name, "")
	run.call("stream_info", "STREAM.INFO."+name, "")
	run.call("stream_delete", "STREAM.DELETE."+name, "")
}

// streamSettings creates a stream with each setting, as each is part of the answers.
func streamSettings(run run) {
	for _, settings := range []string{
		`,"storage":"memory","retention":"interest"`,
		`,"retention":"workqueue","discard":"new","max_msgs":10,"max_consumers":2`,
		`,"max_msgs_per_subject":1,"discard":"new","discard_new_per_subject":true`,
		`,"max_age":60000000000,"max_bytes":100000,"max_msg_size":1000,"duplicate_window":1000000000`,
		`,"description":"all","metadata":{"of":"tests"},"no_ack":true,"sealed":false`,
		`,"deny_delete":true,"deny_purge":true,"compression":"s2","first_seq":100`,
		`,"allow_rollup_hdrs":true,"allow_direct":true,"allow_msg_ttl":true,"subject_delete_marker_ttl":60000000000`,
		`,"allow_atomic":true,"allow_msg_counter":true`,
		`,"allow_msg_schedules":true,"allow_msg_ttl":true`,
		`,"consumer_limits":{"inactive_threshold":60000000000,"max_ack_pending":10}`,
		`,"placement":{"tags":[]},"num_replicas":1`,
		fmt.Sprintf(`,"republish":{"src":"%s.a","dest":"%s_copy.a","headers_only":true}`, name, name),
		fmt.Sprintf(`,"subject_transform":{"src":"%s.a","dest":"%s.b"}`, name, name),
	} {
		run.stream(settings)
		run.call("stream_info", "STREAM.INFO."+name, "")
		run.call("stream_delete", "STREAM.DELETE."+name, "")
	}
}

// copies has a mirror and a stream with sources, whose state is part of the answers.
func copies(run run) {
	run.stream("")
	run.publish("a", "1")
	mirror, sourced := name+"_mirror", name+"_sourced"
	body := fmt.Sprintf(`{"name":%q,"mirror":{"name":%q,"filter_subject":"%s.a"},"mirror_direct":true}`, mirror, name, name)
	run.call("stream_create", "STREAM.CREATE."+mirror, body)
	body = fmt.Sprintf(`{"name":%q,"sources":[{"name":%q,"opt_start_seq":1,`+
		`"subject_transforms":[{"src":"%s.>","dest":"%s.>"}]}]}`, sourced, name, name, sourced)
	run.call("stream_create", "STREAM.CREATE."+sourced, body)
	for _, copied := range []string{mirror, sourced} {
		for {
			found := run.call("stream_info", "STREAM.INFO."+copied, "")
			if found["state"].(object)["messages"] == json.Number("1") {
				break
			}
		}
	}
	run.call("stream_list", "STREAM.LIST", "")
}

func messages(run run) {
	run.stream("")
	run.publish("a", "1")
	run.publish("a", "", "Some", "header")
	run.publish("b", "3")
	get := func(request string) object {
		return run.call("stream_msg_get", "STREAM.MSG.GET."+name, request)["message"].(object)
	}
	equal(get(`{"seq":1}`)["data"], "MQ==")
	equal(get(`{"seq":2}`)["hdrs"] != nil, true)
	equal(get(fmt.Sprintf(`{"last_by_subj":"%s.b"}`, name))["seq"], json.Number("3"))
	equal(get(fmt.Sprintf(`{"seq":2,"next_by_subj":"%s.*"}`, name))["seq"], json.Number("2"))
	run.call("stream_msg_delete", "STREAM.MSG.DELETE."+name, `{"seq":2}`)
	run.call("stream_msg_delete", "STREAM.MSG.DELETE."+name, `{"seq":1,"no_erase":true}`)
	run.call("stream_info", "STREAM.INFO."+name, `{"deleted_details":true}`)
}

// directMessages has answers that are messages, or a status in their headers.
func directMessages(run run) {
	run.stream(`,"allow_direct":true`)
	run.publish("a", "1", "Some", "header")
	run.publish("b", "2")
	get := func(verb, request string) *nats.Msg {
		return must(run.connection.Request("$JS.API.DIRECT.GET."+name+verb, []byte(request), deadline))
	}
	for _, found := range []*nats.Msg{
		get("", `{"seq":1}`), get("", fmt.Sprintf(`{"last_by_subj":"%s.a"}`, name)), get("."+name+".a", ""),
	} {
		equal(string(found.Data), "1")
		equal(found.Header.Get("Some"), "header")
		equal(found.Header.Get("Nats-Stream"), name)
		equal(found.Header.Get("Nats-Subject"), name+".a")
		equal(found.Header.Get("Nats-Sequence"), "1")
		equal(found.Header.Get("Nats-Time-Stamp") != "", true)
	}
	for _, row := range []struct{ verb, request, status, description string }{
		{"", `{"seq":9}`, "404", "Message Not Found"},
		{"." + name + ".x", "", "404", "Message Not Found"},
		{"", "", "408", "Empty Request"},
		{"", "{}", "408", "Empty Request"},
		{"", "no JSON", "408", "Malformed Request"},
	} {
		found := get(row.verb, row.request)
		equal([]string{found.Header.Get("Status"), found.Header.Get("Description")}, []string{row.status, row.description})
	}
	inbox := must(run.connection.SubscribeSync(run.connection.NewInbox()))
	request := fmt.Sprintf(`{"multi_last":["%s.>"]}`, name)
	check(run.connection.PublishRequest("$JS.API.DIRECT.GET."+name, inbox.Subject, []byte(request)))
	for _, pending := range []string{"1", "0"} {
		equal(must(inbox.NextMsg(deadline)).Header.Get("Nats-Num-Pending"), pending)
	}
	end := must(inbox.NextMsg(deadline))
	equal([]string{end.Header.Get("Status"), end.Header.Get("Description")}, []string{"204", "EOB"})
}

func publishAnswers(run run) {
	run.stream(`,"allow_atomic":true`)
	equal(run.publish("a", "1", "Nats-Msg-Id", "id")["seq"], json.Number("1"))
	equal(run.publish("a", "1", "Nats-Msg-Id", "id")["duplicate"], true)
	refusal := run.publish("a", "2", "Nats-Expected-Last-Sequence", "9")["error"].(object)
	equal(refusal["err_code"], json.Number("10071"))
	refusal = run.publish("a", "2", "Nats-Expected-Last-Msg-Id", "other")["error"].(object)
	equal(refusal["err_code"], json.Number("10070"))
	refusal = run.publish("a", "2", "Nats-Expected-Stream", "other")["error"].(object)
	equal(refusal["err_code"], json.Number("10060"))
	batch := []string{"Nats-Batch-Id", "batch", "Nats-Batch-Sequence"}
	first := &nats.Msg{Subject: name + ".a", Header: nats.Header{batch[0]: {batch[1]}, batch[2]: {"1"}}}
	equal(len(must(run.connection.RequestMsg(first, deadline)).Data), 0)
	answer := run.publish("a", "3", append(batch, "2", "Nats-Batch-Commit", "1")...)
	equal([]any{answer["batch"], answer["count"]}, []any{"batch", json.Number("2")})
}

func streamErrors(run run) {
	absent := name + "_absent"
	run.refused(10059, "stream_info", "STREAM.INFO."+absent, "")
	run.refused(10059, "stream_update", "STREAM.UPDATE."+absent, fmt.Sprintf(`{"name":%q}`, absent))
	run.refused(10059, "stream_purge", "STREAM.PURGE."+absent, "")
	run.refused(10059, "stream_delete", "STREAM.DELETE."+absent, "")
	run.refused(10059, "stream_msg_get", "STREAM.MSG.GET."+absent, `{"seq":1}`)
	run.refused(10059, "stream_msg_delete", "STREAM.MSG.DELETE."+absent, `{"seq":1}`)
	run.refused(10059, "consumer_names", "CONSUMER.NAMES."+absent, "")
	run.refused(10059, "consumer_list", "CONSUMER.LIST."+absent, "")
	run.stream(`,"deny_purge":true,"deny_delete":true`)
	run.refused(10058, "stream_create", "STREAM.CREATE."+name, streamOf(`,"max_msgs":5`))
	run.refused(10025, "stream_create", "STREAM.CREATE."+name, "no JSON")
	run.refused(10056, "stream_create", "STREAM.CREATE."+absent, streamOf(""))
	overlapping := fmt.Sprintf(`{"name":%q,"subjects":["%s.a"]}`, absent, name)
	run.refused(10065, "stream_create", "STREAM.CREATE."+absent, overlapping)
	run.refused(10037, "stream_msg_get", "STREAM.MSG.GET."+name, `{"seq":7}`)
	run.refused(10003, "stream_msg_get", "STREAM.MSG.GET."+name, "{}")
	run.refused(10110, "stream_purge", "STREAM.PURGE."+name, "")
	run.publish("a", "1")
	run.refused(10057, "stream_msg_delete", "STREAM.MSG.DELETE."+name, `{"seq":1}`)
	run.refused(10052, "stream_update", "STREAM.UPDATE."+name, streamOf(`,"storage":"memory","deny_purge":true,"deny_delete":true`))
}

// clusterVerbs are refused by a single server.
func clusterVerbs(run run) {
	run.stream("")
	run.consumer("reader", `,"ack_policy":"explicit"`)
	run.refused(10010, "stream_leader_stepdown", "STREAM.LEADER.STEPDOWN."+name, "")
	run.refused(10010, "stream_remove_peer", "STREAM.PEER.REMOVE."+name, `{"peer":"other"}`)
	run.refused(10010, "consumer_leader_stepdown", "CONSUMER.LEADER.STEPDOWN."+name+".reader", "")
}

// snapshots takes one, and restores the stream under its name.
func snapshots(run run) {
	run.stream("")
	run.publish("a", "1")
	chunks := must(run.connection.SubscribeSync(run.connection.NewInbox()))
	request := fmt.Sprintf(`{"deliver_subject":%q,"no_consumers":false,"chunk_size":65536}`, chunks.Subject)
	begun := run.call("stream_snapshot", "STREAM.SNAPSHOT."+name, request)
	var archive [][]byte
	for {
		chunk := must(chunks.NextMsg(deadline))
		if len(chunk.Data) == 0 {
			break
		}
		archive = append(archive, chunk.Data)
		if chunk.Reply != "" {
			check(chunk.Respond(nil))
		}
	}
	run.event("advisory.v1.snapshot_create")
	run.event("advisory.v1.snapshot_complete")
	restore := string(must(json.Marshal(object{"config": begun["config"], "state": begun["state"]})))
	run.refused(10130, "stream_restore", "STREAM.RESTORE."+name, restore)
	run.call("stream_delete", "STREAM.DELETE."+name, "")
	ready := run.call("stream_restore", "STREAM.RESTORE."+name, restore)
	for _, chunk := range archive {
		must(run.connection.Request(ready["deliver_subject"].(string), chunk, deadline))
	}
	end := must(run.connection.Request(ready["deliver_subject"].(string), nil, deadline))
	run.conform("io.nats.jetstream.api.v1.stream_create_response", end.Data)
	run.event("advisory.v1.restore_create")
	run.event("advisory.v1.restore_complete")
	found := run.call("stream_msg_get", "STREAM.MSG.GET."+name, `{"seq":1}`)
	equal(found["message"].(object)["data"], "MQ==")
}
