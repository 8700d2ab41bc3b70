interface Envelope {
  readonly error: {
    readonly message: string
    readonly hint?: string | null
    readonly type: string
    readonly param: string | null
    readonly code: string | null
  }
}

/** A refusal in the gateway's envelope, with the hint in its message; its status is 0 if no answer came. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  readonly code: string | null
  readonly param: string | null
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, { error }: Envelope, retryAfterSeconds?: number) {
    super(error.hint ? `${error.message} ${error.hint}` : error.message)
    this.status = status
    this.code = error.code
    this.param = error.param
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)

const envelope = (message: string): Envelope => ({ error: { message, type: "api_error", param: null, code: null } })

export const unreachableError = () => new ApiError(0, envelope("The gateway cannot be reached."))

export const errorOf = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => undefined)
  const error = isRecord(body) && isRecord(body["error"]) ? body["error"] : {}
  const { code, hint, message, param, type } = error
  const known = {
    message: text(message) ?? `The gateway answered with status ${response.status}.`,
    hint: text(hint),
    type: text(type) ?? "api_error",
    param: text(param),
    code: text(code)
  }
  const retryAfter = response.headers.get("retry-after")
  return new ApiError(response.status, { error: known }, retryAfter === null ? undefined : Number(retryAfter))
}
