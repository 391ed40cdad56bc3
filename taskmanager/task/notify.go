package task

import (
	"context"
	"fmt"

	"go.uber.org/zap"

	"github.com/weirflow/weir"
	"github.com/weirflow/weir/taskmanager/lifecycle"
)

// watchNotification watches the task's operators while they are told of the end of a
// checkpoint, until the function that it returns is called. The task can do nothing else
// in that time, so what hangs there holds up all later checkpoints: it is named in the log,
// and then the task fails (behaviour §8). What the operators were to commit is in the
// checkpoint, and is theirs to commit when they are restored.
func (t *Task) watchNotification(what string, id weir.CheckpointID) (stop func()) {
	warning := t.group.AfterFunc("task/notification-slow", t.r.NotifyWarning, func(context.Context) {
		t.logger.Warn("an operator does not return from being told of "+what+"; the task's later checkpoints wait",
			zap.String("operator", t.told()), zap.Int64("checkpoint", int64(id)),
			zap.Duration("since", t.r.NotifyWarning), zap.Duration("fails_after", t.r.NotifyTimeout))
	})
	deadline := t.group.AfterFunc("task/notification-deadline", t.r.NotifyTimeout, func(context.Context) {
		t.owner.Changed(t.d.Attempt, lifecycle.Fail{Failure: &weir.Failure{
			Message: fmt.Sprintf("being told of %s, %d: the operator has not returned for %v", what, id, t.r.NotifyTimeout),
			Fault:   weir.FaultUser, Operator: t.told(), Subtask: t.d.Attempt.Subtask,
		}})
	})
	return func() {
		warning.Stop()
		deadline.Stop()
	}
}

// told names the operator that is being told, as far as the chain knows. It may be called
// from any goroutine once the task runs.
func (t *Task) told() string {
	if c, ok := t.chain.Chain().(interface{ Told() string }); ok && c.Told() != "" {
		return c.Told()
	}
	return t.vertex.Name
}
