//go:build !linux

package etcdserver

import "errors"

// freeSpace is not known here: what etcd fails of is reported all the same.
func freeSpace(string) (int64, error) { return 0, errors.ErrUnsupported }
