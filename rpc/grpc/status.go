package grpc

import (
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/weirflow/weir/proto/clientpb"
	"github.com/weirflow/weir/rpc"
)

// grpcCodes maps rpc's codes to gRPC's.
var grpcCodes = map[rpc.Code]codes.Code{
	rpc.CodeInternal:           codes.Internal,
	rpc.CodeInvalidArgument:    codes.InvalidArgument,
	rpc.CodeNotFound:           codes.NotFound,
	rpc.CodeAlreadyExists:      codes.AlreadyExists,
	rpc.CodeFailedPrecondition: codes.FailedPrecondition,
	rpc.CodeResourceExhausted:  codes.ResourceExhausted,
	rpc.CodeUnavailable:        codes.Unavailable,
	rpc.CodeDeadlineExceeded:   codes.DeadlineExceeded,
	rpc.CodeNotLeader:          codes.FailedPrecondition,
}

// StatusOf turns an error into a gRPC status error whose detail lets [ErrorOf] give
// the same code, hint and leader back. An error that is a status already stays.
func StatusOf(err error) error {
	if err == nil {
		return nil
	}
	if _, ok := status.FromError(err); ok {
		return err
	}
	code := rpc.CodeOf(err)
	detail := &clientpb.ErrorDetail{Code: uint32(code)}
	message := err.Error()
	var e *rpc.Error
	if errors.As(err, &e) {
		detail.Hint, message = e.Hint, e.Message
	}
	var nl *rpc.NotLeaderError
	if errors.As(err, &nl) {
		detail.Leader = nl.Leader
	}
	st := status.New(grpcCodes[code], message)
	if with, derr := st.WithDetails(detail); derr == nil {
		st = with
	}
	return st.Err()
}

// ErrorOf turns a gRPC status error into rpc's errors: a [*rpc.Error], or a
// [*rpc.NotLeaderError]. Other errors stay.
func ErrorOf(err error) error {
	st, ok := status.FromError(err)
	if err == nil || !ok {
		return err
	}
	for _, d := range st.Details() {
		detail, ok := d.(*clientpb.ErrorDetail)
		if !ok {
			continue
		}
		code := rpc.Code(min(detail.GetCode(), uint32(rpc.CodeNotLeader)))
		if code == rpc.CodeNotLeader {
			return &rpc.NotLeaderError{Leader: detail.GetLeader()}
		}
		return &rpc.Error{Code: code, Message: st.Message(), Hint: detail.GetHint()}
	}
	code := codeOf(st.Code())
	return &rpc.Error{Code: code, Message: st.Message(), Unreached: code == rpc.CodeUnavailable}
}

// codeOf is for statuses that are not ours, for example of a broken connection.
func codeOf(c codes.Code) rpc.Code {
	switch c {
	case codes.Unavailable, codes.Canceled, codes.Unimplemented: // the last: something else serves there
		return rpc.CodeUnavailable
	case codes.DeadlineExceeded:
		return rpc.CodeDeadlineExceeded
	case codes.InvalidArgument:
		return rpc.CodeInvalidArgument
	case codes.NotFound:
		return rpc.CodeNotFound
	case codes.AlreadyExists:
		return rpc.CodeAlreadyExists
	case codes.FailedPrecondition:
		return rpc.CodeFailedPrecondition
	case codes.ResourceExhausted:
		return rpc.CodeResourceExhausted
	default:
		return rpc.CodeInternal
	}
}
