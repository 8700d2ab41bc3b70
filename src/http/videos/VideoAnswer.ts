import { Either } from "effect"
import { InvalidRequest } from "../../domain/Failure.ts"
import type { Video } from "../../services/videos/VideoJobs.ts"

/** Always in the same order: a replay is equal to the first answer to the byte. */
export const videoJson = ({ completedAt, createdAt, error, id, model, seconds, status, url }: Video) => ({
  id,
  object: "video",
  model,
  status,
  created_at: createdAt,
  ...(completedAt === undefined ? {} : { completed_at: completedAt }),
  seconds,
  ...(url === undefined ? {} : { url, data: [{ url }] }),
  ...(error === undefined ? {} : { error: { code: error.code, message: error.message } })
})

export const contentOf = ({ status, url }: Pick<Video, "status" | "url">): Either.Either<string, InvalidRequest> =>
  status === "completed" && url !== undefined
    ? Either.right(url)
    : Either.left(new InvalidRequest({ message: "The video is not completed.", param: null }))
