// Package agqload is a load of AGQ workers and clients for torture: it submits actions, pops and
// reports jobs over RESP, and checks what it saw against the database at the end.
package agqload
