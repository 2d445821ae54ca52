package servertest

import kagziv1 "github.com/kagzi/kagzi/proto/kagzi/v1"

const AToken = "000102030405060708090a0b0c0d0e0f"

func PayloadOf(size int) *kagziv1.Payload { return &kagziv1.Payload{Data: make([]byte, size)} }
