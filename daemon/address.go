package daemon

import (
	"context"
	"fmt"
	"net"
	"strconv"
	"strings"

	"github.com/weirflow/weir/rpc"
)

// checkListens checks a role's addresses before anything is started. Metrics may be
// off.
func checkListens(listen, metrics string, insecure bool) error {
	if err := checkListen("--listen", listen, insecure); err != nil || metrics == "" {
		return err
	}
	return checkListen("--metrics-listen", metrics, insecure)
}

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
// bound port if it names none, else the bound address. Of a socket that listens on
// every address, it is one of this host's that others may reach.
func advertised(advertise string, bound net.Addr) (string, error) {
	host, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		return "", err
	}
	if advertise == "" {
		if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
			host = anyOwnAddress()
		}
		return net.JoinHostPort(host, port), nil
	}
	host = strings.Trim(advertise, "[]")
	if h, p, err := net.SplitHostPort(advertise); err == nil {
		host = h
		if p != "0" && p != "" {
			port = p
		}
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 || host == "" || strings.ContainsAny(host, "/ @") {
		return "", invalid(fmt.Sprintf("--advertise %q is no address", advertise), "want a host, or host:port")
	}
	return net.JoinHostPort(host, port), nil
}

// anyOwnAddress is an address of this host beyond loopback, if it has one.
func anyOwnAddress() string {
	addrs, err := net.InterfaceAddrs()
	if err != nil {
		return "127.0.0.1"
	}
	for _, a := range addrs {
		if n, ok := a.(*net.IPNet); ok && n.IP.To4() != nil && n.IP.IsGlobalUnicast() {
			return n.IP.String()
		}
	}
	return "127.0.0.1"
}

func invalid(message, hint string) error {
	return &rpc.Error{Code: rpc.CodeInvalidArgument, Message: message, Hint: hint}
}
