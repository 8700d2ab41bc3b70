/** A bug to be planted: in `file`, the only occurrence of `find` becomes `replace`. */
export interface Bug {
  readonly name: string
  readonly file: string
  readonly find: string
  readonly replace: string
  /** Test files of which one must fail. */
  readonly caughtBy: ReadonlyArray<string>
}
