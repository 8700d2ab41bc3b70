import { parseProgressFromLogs } from "replicate"
import { decodeProgress } from "../../../src/providers/replicate/Replicate.ts"
import { assert, describe, it } from "../../harness/It.ts"
import { replicateAccount } from "./Hosts.ts"

const decoded = (logs: unknown) =>
  decodeProgress(replicateAccount("http://replicate.test"), {
    status: 200,
    body: JSON.stringify({ id: "p1", status: "processing", logs })
  })

const bar = (percent: number, done: number) => `${percent}%|███       | ${done}/50 [00:33<00:10, 2.29it/s]`

describe("the progress of a prediction", () => {
  it.each([
    ["no logs", "", undefined],
    ["other lines", "Using seed: 42\nLoading pipeline 50% done", undefined],
    ["a bar", `Using seed: 42\n ${bar(0, 0)}`, 0],
    ["the newest of several bars", `${bar(10, 5)}\n${bar(12, 6)}\nDecoding`, 12],
    ["a bar of a later stage", `${bar(100, 50)}\n  ${bar(4, 2)}\n`, 4]
  ])("is read from %s as the official client reads it", (_, logs, percent) => {
    assert.deepStrictEqual(decoded(logs), { state: "in_progress", percent })
    const theirs = parseProgressFromLogs(logs)?.percentage
    assert.strictEqual(theirs === undefined ? undefined : Math.round(theirs * 100), percent)
  })

  it("is read from a bar that is drawn over itself", () => {
    assert.deepStrictEqual(decoded(`${bar(10, 5)}\r${bar(38, 19)}`), { state: "in_progress", percent: 38 })
  })

  it.each([
    ["The output was Content Exists Risk", "retry"],
    ["Input data may contain inappropriate content.", "moderation"],
    ["NSFW content detected", "moderation"],
    ["CUDA out of memory", "retry"]
  ])("is a failure where it succeeded without an output, by its error: %s", (error, meaning) => {
    const body = JSON.stringify({ id: "p1", status: "succeeded", output: null, error })
    const progress = decodeProgress(replicateAccount("http://replicate.test"), { status: 200, body })
    if (progress?.state !== "failed") return assert.fail(progress?.state)
    assert.strictEqual(progress.failure.class, meaning)
  })

  it("is unknown where logs are no text", () => {
    for (const logs of [null, 5, [bar(1, 1)], undefined]) {
      assert.deepStrictEqual(decoded(logs), { state: "in_progress", percent: undefined })
    }
  })
})
