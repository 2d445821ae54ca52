// Package model holds stores to a plain model of the contract: random lives, which must be answered alike.
package model
