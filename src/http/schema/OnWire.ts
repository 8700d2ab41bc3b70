import { HttpApiSchema } from "@effect/platform"
import { ParseResult, Schema } from "effect"
import type { Failure } from "../../domain/Failure.ts"
import { toWire } from "../errors/Wire.ts"
import { Envelope } from "./Envelope.ts"

type FailureClass = abstract new (...args: never) => Failure

/** The failures that share a status, encoded as the envelope; a handler fails with them as they are. */
export const onWire = <Classes extends ReadonlyArray<FailureClass>>(status: number, ...failures: Classes) => {
  const failure = Schema.Union(...failures.map((type) => Schema.instanceOf<Classes[number]>(type)))
  return Schema.transformOrFail(Envelope, failure, {
    strict: true,
    decode: (wire, _, ast) => ParseResult.fail(new ParseResult.Forbidden(ast, wire, "failures are only encoded")),
    encode: (_, __, ___, instance) => ParseResult.succeed(toWire(instance).body)
  }).annotations({ ...HttpApiSchema.annotations({ status }), jsonSchema: { failures } })
}
