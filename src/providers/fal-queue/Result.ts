import { Predicate } from "effect"
import type { Media } from "../jobs/Progress.ts"

export type Result = Media | "moderated" | "pending" | "nothing"

const urlIn = (value: unknown): string | undefined =>
  Predicate.isRecord(value) && typeof value.url === "string" && value.url !== "" ? value.url : undefined

const firstIn = (value: unknown): unknown => (Array.isArray(value) ? value[0] : undefined)

const pending: ReadonlySet<unknown> = new Set(["IN_QUEUE", "IN_PROGRESS"])

/** What the result call of a job gave. */
export const resultIn = (body: unknown): Result => {
  if (!Predicate.isRecord(body)) return "nothing"
  const { has_nsfw_concepts, image, images, revised_prompt, status, video, videos } = body
  if (Array.isArray(has_nsfw_concepts) && has_nsfw_concepts.includes(true)) return "moderated"
  const url = [video, firstIn(videos), firstIn(images), image].map(urlIn).find(Predicate.isNotUndefined)
  if (url === undefined) return pending.has(status) ? "pending" : "nothing"
  return { url, revisedPrompt: typeof revised_prompt === "string" ? revised_prompt : undefined }
}
