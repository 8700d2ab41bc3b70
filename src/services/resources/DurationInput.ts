import { Schema } from "effect"
import { moment } from "../../domain/Moment.ts"
import type { About, Input } from "./Input.ts"

const daySeconds = 86_400

/** In whole seconds, of at most so many days. */
export const duration = (mostDays: number, about: About): Input<typeof Schema.Number, Schema.Schema<number>> => {
  const most = mostDays * daySeconds
  return {
    ...about,
    record: Schema.Number,
    body: Schema.Int.pipe(Schema.between(1, most)),
    problem: `must be an integer of 1 to ${most} seconds`,
    accepts: `a duration such as 90s, 30m, 1h, 7d or 2w, of at most ${mostDays}d`,
    read: (word) => {
      const given = moment(word)
      const seconds = given !== undefined && "distance" in given ? given.distance / 1000 : 0
      return seconds >= 1 && seconds <= most ? seconds : undefined
    },
    form: { kind: "duration" }
  }
}
