package grpc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrUnknownHost says that the host of an address has no entry in DNS here.
var ErrUnknownHost = errors.New("the host name is not known here")

// resolveTimeout bounds a look-up that only explains a failure.
const resolveTimeout = 2 * time.Second

// CheckHost returns an error that wraps [ErrUnknownHost] if the address's host cannot be
// resolved, for gRPC's own words do not say so. Anything else is not its business.
func CheckHost(ctx context.Context, address string) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil || net.ParseIP(host) != nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), resolveTimeout)
	defer cancel()
	_, err = net.DefaultResolver.LookupHost(ctx, host)
	if dns, ok := errors.AsType[*net.DNSError](err); ok && dns.IsNotFound {
		return fmt.Errorf("%w: %q: is it spelled right, and does DNS know it", ErrUnknownHost, host)
	}
	return nil
}
