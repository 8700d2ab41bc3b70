import { InvalidRequest } from "./Failure.ts"
import { largestReference, longestUrl } from "./Media.ts"

const mib = 1024 * 1024

/** Why a reference image cannot be used, without a subject. Never names a private host or quotes its answer. */
export const referenceProblems = {
  neither: "is neither an http(s) URL nor base64",
  neitherUrl: `is neither an http(s) URL of at most ${longestUrl} characters nor a \`data:\` URL with base64`,
  empty: "is empty or not valid base64",
  large: `is larger than ${largestReference / mib} MiB`,
  largeTogether: (bytes: number) => `makes the images larger than ${bytes / mib} MiB together`,
  stored: "is not in this gateway's media, or was deleted",
  format: "is not a complete PNG, JPEG, WebP or GIF",
  address: "is at an address that is not public",
  name: "is at a host that has no public address",
  url: `has a URL that is not valid or has more than ${longestUrl} characters`,
  credentials: "has a URL with a user name or password",
  port: "is not at the default port of its scheme",
  redirect: "redirects too often, or to something other than an http(s) URL",
  status: (status: number) => `could not be fetched: its host answered with status ${status}`,
  network: "could not be fetched: its host could not be reached, or broke off its answer",
  time: "took too long to fetch",
  provider: "could not be used by the provider"
} as const

/** Names one of several images; undefined if there is only one. */
export const nthImage = (index: number, count: number): string | undefined =>
  count > 1 ? `Image ${index + 1} of ${count}` : undefined

export const unusableReference = "Failed to process the reference image."

export const explainReference = (problem: string, subject = "The image"): string => `${subject} ${problem}.`

export const refuseReference = (param: string, problem: string, subject?: string): InvalidRequest =>
  new InvalidRequest({ message: unusableReference, param, hint: explainReference(problem, subject) })
