package rpc

import "errors"

// Code classes the errors of a ClientGateway; rpc/grpc maps each to one gRPC code.
type Code uint8

// Codes.
const (
	CodeInternal Code = iota
	CodeInvalidArgument
	CodeNotFound
	CodeAlreadyExists
	CodeFailedPrecondition
	CodeResourceExhausted
	CodeUnavailable
	CodeDeadlineExceeded
	CodeNotLeader
)

// Error is an error with a code and details for people: what, where, and what to do.
type Error struct {
	Code    Code
	Message string
	Hint    string // what to do, if we know
	// Unreached says that the call did not reach a JobManager, or its answer did not
	// reach us; else the JobManager says so itself.
	Unreached bool
}

func (e *Error) Error() string {
	if e.Hint == "" {
		return e.Message
	}
	return e.Message + " (" + e.Hint + ")"
}

// CodeOf returns the code of the first Error in err's chain, else CodeInternal.
func CodeOf(err error) Code {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	if errors.Is(err, ErrNotLeader) {
		return CodeNotLeader
	}
	return CodeInternal
}
