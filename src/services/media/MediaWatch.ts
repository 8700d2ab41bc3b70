import { Effect, Either, Schedule } from "effect"
import { Timings } from "../runtime/Timings.ts"
import { MediaStore } from "./MediaStore.ts"

/** Looks whether media can be written, logs when that changes, and says what it saw last. */
export const mediaWatch = Effect.gen(function* () {
  const store = yield* MediaStore
  const { checkMediaEvery } = yield* Timings
  let isWritable = true
  const check = Effect.gen(function* () {
    const result = yield* Effect.either(store.check)
    const wasWritable = isWritable
    isWritable = Either.isRight(result)
    if (Either.isLeft(result) && wasWritable) {
      yield* Effect.logWarning(`The media store cannot be written: ${result.left.detail}`)
    }
    if (isWritable && !wasWritable) yield* Effect.logInfo("The media store can be written again")
  })
  yield* check.pipe(Effect.repeat(Schedule.spaced(checkMediaEvery)), Effect.forkScoped)
  return () => isWritable
})
