// Package kagziv1 is the Go code of the wire contract, generated from the .proto files in this
// directory. Their comments document the messages and methods. Programs that run or start workflows
// should use package kagzi (sdk) instead.
package kagziv1
