export interface PlainServe {
  /** Overrides `WORKERS`. */
  readonly workers: string | undefined
}

/** What a command line asks for that needs no commands loaded: only `serve` and how many workers; undefined otherwise. */
export const plainServeOf = (args: ReadonlyArray<string>): PlainServe | undefined => {
  const line = args.join(" ")
  if (line === "serve") return { workers: undefined }
  const workers = /^serve --workers[ =]([^\s-]\S*)$/.exec(line)?.[1]
  return workers === undefined ? undefined : { workers }
}
