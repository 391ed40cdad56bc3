package daemon

import (
	"context"
	"fmt"
	"net"
	"strings"

	"github.com/weirflow/weir/rpc"
)

// checkListen refuses a plaintext address beyond loopback that was not asked for.
func checkListen(flag, address string, insecure bool) error {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return invalid(fmt.Sprintf("%s %q: %v", flag, address, err), "want host:port, for example 127.0.0.1:0")
	}
	if insecure || isLoopback(host) {
		return nil
	}
	return invalid(fmt.Sprintf("%s %s is reachable from outside and not encrypted", flag, address),
		"listen at a loopback address, or add --insecure if the network is trusted")
}

func isLoopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip := net.ParseIP(host)
	return ip != nil && ip.IsLoopback()
}

// listen opens a TCP socket; a taken port gets an error that says what to do.
func listen(ctx context.Context, flag, address string) (net.Listener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		hint := ""
		if strings.Contains(err.Error(), "address already in use") {
			hint = "another process has the port; choose another one, or port 0 for any free one"
		}
		return nil, &rpc.Error{Code: rpc.CodeUnavailable, Message: fmt.Sprintf("%s %s: %v", flag, address, err), Hint: hint}
	}
	return l, nil
}

// advertised is the address that others are told: what was asked for, with the
// bound port if it names none, else the bound address.
func advertised(advertise string, bound net.Addr) (string, error) {
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", err
	}
	if advertise == "" {
		return bound.String(), nil
	}
	if host, p, err := net.SplitHostPort(advertise); err == nil {
		if p == "0" || p == "" {
			return net.JoinHostPort(host, port), nil
		}
		return advertise, nil
	}
	if strings.ContainsAny(advertise, "/ ") {
		return "", invalid(fmt.Sprintf("--advertise %q is no address", advertise), "want a host, or host:port")
	}
	return net.JoinHostPort(strings.Trim(advertise, "[]"), port), nil
}

func invalid(message, hint string) error {
	return &rpc.Error{Code: rpc.CodeInvalidArgument, Message: message, Hint: hint}
}
