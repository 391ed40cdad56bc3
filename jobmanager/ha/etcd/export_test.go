package etcd

import "github.com/weirflow/weir/jobmanager/ha"

// Kill ends the registry as the end of its process would: nothing is given back.
func (r *Registry) Kill() error {
	l, _ := r.shut()
	if l != nil {
		l.end(ha.ErrClosed)
	}
	return r.disconnect()
}
