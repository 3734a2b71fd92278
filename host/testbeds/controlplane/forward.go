package main

import (
	"fmt"
	"io"
	"net"
	"os"
	"runtime"

	"golang.org/x/sys/unix"
)

// forward is a small relay: it listens on LISTEN in the network namespace it
// was started in and connects each client to TARGET in the namespace of the
// file NETNS.
func forward(args []string) error {
	if len(args) != 3 {
		return fmt.Errorf("usage: forward LISTEN NETNS TARGET")
	}
	netns, err := os.Open(args[1])
	if err != nil {
		return err
	}
	l, err := net.Listen("tcp4", args[0])
	if err != nil {
		return err
	}
	for {
		in, err := l.Accept()
		if err != nil {
			return err
		}
		go func() {
			defer in.Close()
			out, err := dialIn(netns, args[2])
			if err != nil {
				fmt.Fprintln(os.Stderr, "forward:", err)
				return
			}
			defer out.Close()
			done := make(chan struct{})
			go func() { pipe(out, in); close(done) }()
			pipe(in, out)
			<-done
		}()
	}
}

// dialIn connects from another network namespace. The thread that enters it
// is locked and never unlocked, so it ends with the goroutine.
func dialIn(netns *os.File, target string) (net.Conn, error) {
	type result struct {
		c   net.Conn
		err error
	}
	ch := make(chan result)
	go func() {
		runtime.LockOSThread()
		if err := unix.Setns(int(netns.Fd()), unix.CLONE_NEWNET); err != nil {
			ch <- result{nil, err}
			return
		}
		c, err := net.Dial("tcp4", target)
		ch <- result{c, err}
	}()
	r := <-ch
	return r.c, r.err
}

func pipe(to, from net.Conn) {
	io.Copy(to, from)
	to.(*net.TCPConn).CloseWrite()
}
