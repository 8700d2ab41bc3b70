interface ErrorBody {
  readonly message: string
  readonly code: string | null
  readonly param: string | null
}

/** An error response of the gateway, with the hint in its message. Its status is 0 if there was no response. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  readonly code: string | null
  readonly param: string | null
  readonly retryAfterSeconds: number | undefined
  readonly requestId: string | null

  constructor(
    status: number,
    { code, message, param }: ErrorBody,
    retryAfterSeconds?: number,
    requestId: string | null = null
  ) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.retryAfterSeconds = retryAfterSeconds
    this.requestId = requestId
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const toText = (value: unknown): string | null => (typeof value === "string" ? value : null)

export const unreachableError = () =>
  new ApiError(0, { message: "The gateway cannot be reached.", param: null, code: null })

/** Reads an error of the API. `summary` is the message if there is none. */
const errorBodyOf = (body: unknown, summary: string): ErrorBody => {
  const { code, hint, message, param } = isRecord(body) && isRecord(body["error"]) ? body["error"] : {}
  const text = toText(message) ?? summary
  return {
    message: toText(hint) ? `${text} ${toText(hint)}` : text,
    code: toText(code),
    param: toText(param)
  }
}

export const errorOf = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => undefined)
  const error = errorBodyOf(body, `The gateway returned status ${response.status}.`)
  const retryAfter = response.headers.get("retry-after")
  const requestId = response.headers.get("x-request-id")
  return new ApiError(response.status, error, retryAfter === null ? undefined : Number(retryAfter), requestId)
}

/** Reads an error that arrives after the status of the response, in a stream or in a video. */
export const lateErrorOf = (body: unknown): ApiError => new ApiError(200, errorBodyOf(body, "The request failed."))
