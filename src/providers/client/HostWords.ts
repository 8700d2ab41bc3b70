/** Hosts' words for failures, in lower case. */

import { Record } from "effect"
import type { FailureClass } from "../../services/routing/Provider.ts"

/** MiniMax gives its codes in `base_resp.status_code`, mostly in a 200. */
export const statusWord = (code: unknown): string => `base_resp ${String(code)}`
const statusWords = (...codes: ReadonlyArray<number>): ReadonlyArray<string> => codes.map(statusWord)

const wordsOfClass = {
  limit: [
    // Requests, tokens or connections of a minute.
    ...statusWords(1002, 1039, 1041),
    "rate_limit_exceeded",
    "rate_limit_error",
    "slow_down",
    "server_is_overloaded"
  ],
  account: [
    // No credential or a wrong one, no balance, a plan that is used up or lacks the model.
    ...statusWords(1004, 1008, 2049, 2056, 2061),
    "insufficient_balance_error",
    // GLM sends this one with a status of 429.
    "1113",
    "insufficient_quota",
    "credit_balance_exhausted",
    "organization_spend_limit_exceeded",
    "project_spend_limit_exceeded",
    "organization_usage_limit_exceeded",
    "billing_hard_limit_reached",
    "billing_not_active",
    "invalid_api_key",
    "api_key_invalid",
    "authentication_error",
    "unauthenticated",
    "permission_error",
    "permission_denied",
    "failed_precondition"
  ],
  moderation: [
    // The input, and the output that the host withheld.
    ...statusWords(1026, 1027),
    // GLM sends this one.
    "1301",
    "data_inspection_failed",
    "datainspectionfailed",
    "content_safety_violation",
    "censorship_blocked",
    "content_policy_violation",
    "image_content_policy_violation",
    "moderation_blocked",
    "content_filter",
    "responsibleaipolicyviolation",
    "invalid_prompt",
    "bio_policy"
  ],
  // Parameters, and characters that cannot be seen.
  request: ["context_length_exceeded", ...statusWords(2013, 1042)]
} satisfies Partial<Record<FailureClass, ReadonlyArray<string>>>

const classes: ReadonlyMap<string, FailureClass> = new Map(
  Record.toEntries(wordsOfClass).flatMap(([meaning, words]) => words.map((word) => [word, meaning]))
)

const imageWords = new Set([
  "failed_to_download_image",
  "image_too_large",
  "image_too_small",
  "image_parse_error",
  "image_file_too_large",
  "image_file_not_found",
  "unsupported_image_media_type",
  "empty_image_file"
])
export const isImageWord = (word: string) => word.startsWith("invalid_image") || imageWords.has(word)
/** Part of a code, such as `InternalError.Algo.DataInspectionFailed`. */
const isSensitive = (word: string) => /sensitivecontentdetected|\bdatainspectionfailed\b/.test(word)

export const classOfWord = (word: string): FailureClass | undefined =>
  isSensitive(word) ? "moderation" : classes.get(word)

/** Messages without a code of their own: the whole, or the first words, since later ones may quote the customer. */
export const moderationMessage =
  /^(<\d{3}> )?(content exists risk\b|internalerror\.algo\.datainspectionfailed\b|(input|output)( text| image)? data may contain inappropriate content\b|(input|output) new_sensitive\b|content violates usage guidelines\b)/i
