// Package kagziv1 is the wire contract as Go code, made from the .proto files beside it, whose
// comments say what each message and method means. Programs that run or start workflows use package
// kagzi (sdk), which speaks it.
package kagziv1
