package ha

import (
	"fmt"
	"strings"
)

// OpKind says what an [Op] does to its key.
type OpKind uint8

// Kinds of operations.
const (
	OpCheck  OpKind = iota // nothing: the key is only expected to have its revision
	OpPut                  // set the value
	OpDelete               // remove the key
)

// Op is one part of a transaction. The key must be at revision Expect (0: absent)
// for the transaction to be applied. Because each write states what it replaces,
// a transaction can be repeated without harm.
type Op struct {
	Kind   OpKind
	Key    string
	Value  []byte   // of OpPut
	Expect Revision // ModRevision the key must have; 0: it must not exist
}

// Create puts a key that must not exist.
func Create(key string, value []byte) Op { return Op{Kind: OpPut, Key: key, Value: value} }

// Update replaces the value that was read as kv.
func Update(kv KV, value []byte) Op {
	return Op{Kind: OpPut, Key: kv.Key, Value: value, Expect: kv.ModRevision}
}

// Delete removes the key that was read as kv.
func Delete(kv KV) Op { return Op{Kind: OpDelete, Key: kv.Key, Expect: kv.ModRevision} }

// Unchanged expects the key to be as it was read.
func Unchanged(kv KV) Op { return Op{Kind: OpCheck, Key: kv.Key, Expect: kv.ModRevision} }

// CheckTxn says whether the ops make a legal transaction: within the limits, each
// key once. Implementations call it before they send.
func CheckTxn(ops []Op) error {
	if len(ops) == 0 || len(ops) > MaxTxnOps {
		return fmt.Errorf("%w: a transaction of %d operations, want 1 to %d", ErrTooLarge, len(ops), MaxTxnOps)
	}
	seen := make(map[string]bool, len(ops))
	total := 0
	for _, op := range ops {
		if op.Key == "" || len(op.Key) > MaxKeyLength {
			return fmt.Errorf("%w: a key of %d bytes, want 1 to %d", ErrTooLarge, len(op.Key), MaxKeyLength)
		}
		if op.Key == LeaderKey || strings.HasPrefix(op.Key, LeaderKey+"/") {
			return fmt.Errorf("%w: %q belongs to the election", ErrBadKey, op.Key)
		}
		if len(op.Value) > MaxValueLength {
			return fmt.Errorf("%w: key %q has a value of %d bytes, want at most %d", ErrTooLarge, op.Key, len(op.Value), MaxValueLength)
		}
		if seen[op.Key] {
			return fmt.Errorf("%w: %q occurs twice in a transaction", ErrBadKey, op.Key)
		}
		seen[op.Key] = true
		total += len(op.Key) + len(op.Value)
	}
	if total > MaxTxnLength {
		return fmt.Errorf("%w: a transaction of %d bytes, want at most %d", ErrTooLarge, total, MaxTxnLength)
	}
	return nil
}

// CheckPrefix says whether the prefix can be listed.
func CheckPrefix(prefix string) error {
	if prefix == "" || len(prefix) > MaxKeyLength {
		return fmt.Errorf("%w: a prefix of %d bytes, want 1 to %d", ErrTooLarge, len(prefix), MaxKeyLength)
	}
	return nil
}

// LeaderKey is the election's key. Only elections write it.
const LeaderKey = "leader"
