package main

import (
	"bytes"
	"errors"

	"github.com/nats-io/nats.go/jetstream"
)

func (run run) bucket() jetstream.KeyValue {
	return must(run.js.CreateKeyValue(run.context, jetstream.KeyValueConfig{Bucket: name, History: 5}))
}

func keyValue(run run) {
	bucket := run.bucket()
	revision := must(bucket.Create(run.context, "key", []byte("1")))
	_, err := bucket.Create(run.context, "key", []byte("x"))
	equal(errors.Is(err, jetstream.ErrKeyExists), true)
	revision = must(bucket.Update(run.context, "key", []byte("2"), revision))
	_, err = bucket.Update(run.context, "key", []byte("x"), revision-1)
	equal(err != nil, true)
	entry := must(bucket.Get(run.context, "key"))
	equal([]any{string(entry.Value()), entry.Revision()}, []any{"2", revision})
	equal(string(must(bucket.GetRevision(run.context, "key", 1)).Value()), "1")
	must(bucket.PutString(run.context, "other", "3"))
	equal(len(must(bucket.History(run.context, "key"))), 2)
	equal(must(bucket.Keys(run.context)), []string{"key", "other"})
	check(bucket.Delete(run.context, "key"))
	_, err = bucket.Get(run.context, "key")
	equal(errors.Is(err, jetstream.ErrKeyNotFound), true)
	must(bucket.Create(run.context, "key", []byte("4")))
	check(bucket.Purge(run.context, "key"))
	equal(len(must(bucket.History(run.context, "key"))), 1)
	equal(must(bucket.Status(run.context)).History(), int64(5))
	check(run.js.DeleteKeyValue(run.context, name))
}

func keyValueWatch(run run) {
	bucket := run.bucket()
	must(bucket.PutString(run.context, "a.x", "1"))
	watcher := must(bucket.Watch(run.context, "a.*"))
	equal(string(wait(watcher.Updates()).Value()), "1")
	equal(wait(watcher.Updates()), nil)
	must(bucket.PutString(run.context, "b.x", "2"))
	must(bucket.PutString(run.context, "a.y", "3"))
	check(bucket.Delete(run.context, "a.x"))
	changed := wait(watcher.Updates())
	equal([]any{changed.Key(), string(changed.Value())}, []any{"a.y", "3"})
	deleted := wait(watcher.Updates())
	equal([]any{deleted.Key(), deleted.Operation()}, []any{"a.x", jetstream.KeyValueDelete})
	check(watcher.Stop())
}

func objectStore(run run) {
	store := must(run.js.CreateObjectStore(run.context, jetstream.ObjectStoreConfig{Bucket: name}))
	large := bytes.Repeat([]byte("0123456789abcdef"), 5<<16)
	info := must(store.PutBytes(run.context, "large", large))
	equal([]any{info.Size, info.Chunks}, []any{uint64(5 << 20), uint32(40)})
	equal(bytes.Equal(must(store.GetBytes(run.context, "large")), large), true)
	must(store.PutString(run.context, "small", "a newt"))
	equal(must(store.GetString(run.context, "small")), "a newt")
	equal(len(must(store.List(run.context))), 2)
	check(store.Delete(run.context, "large"))
	_, err := store.GetBytes(run.context, "large")
	equal(errors.Is(err, jetstream.ErrObjectNotFound), true)
	equal(len(must(store.List(run.context))), 1)
	check(run.js.DeleteObjectStore(run.context, name))
}
