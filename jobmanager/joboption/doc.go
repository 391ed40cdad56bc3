// Package joboption is the options of a job: the keys that `--set key=value`
// reaches, their types, defaults and meaning (DECISIONS 32).
//
// It owns the table of keys and the decoding of values into [Settings]. Those of
// checkpoints it hands to package checkpointing. It must not know what a setting
// does.
//
// [Parse] is strict: an unknown key is refused and the nearest known one is named,
// and all faults are reported at once. [Keys] lists the table for help texts;
// docs/config.md is checked against it. [Effective] shows every key with the value
// that holds.
//
// Pure: no goroutine, lock, clock or I/O. Read key.go, then settings.go.
package joboption
