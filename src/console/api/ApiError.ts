interface Refusal {
  readonly message: string
  readonly code: string | null
  readonly param: string | null
}

/** A refusal in the gateway's envelope, with the hint in its message; its status is 0 if no answer came. */
export class ApiError extends Error {
  override readonly name = "ApiError"
  readonly status: number
  readonly code: string | null
  readonly param: string | null
  readonly retryAfterSeconds: number | undefined

  constructor(status: number, { code, message, param }: Refusal, retryAfterSeconds?: number) {
    super(message)
    this.status = status
    this.code = code
    this.param = param
    this.retryAfterSeconds = retryAfterSeconds
  }
}

const isRecord = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null

const text = (value: unknown): string | null => (typeof value === "string" ? value : null)

export const unreachableError = () =>
  new ApiError(0, { message: "The gateway cannot be reached.", param: null, code: null })

export const errorOf = async (response: Response): Promise<ApiError> => {
  const body: unknown = await response.json().catch(() => undefined)
  const { code, hint, message, param } = isRecord(body) && isRecord(body["error"]) ? body["error"] : {}
  const said = text(message) ?? `The gateway answered with status ${response.status}.`
  const refusal = { message: text(hint) ? `${said} ${text(hint)}` : said, code: text(code), param: text(param) }
  const retryAfter = response.headers.get("retry-after")
  return new ApiError(response.status, refusal, retryAfter === null ? undefined : Number(retryAfter))
}
