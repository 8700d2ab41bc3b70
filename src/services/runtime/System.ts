/** Returns the code of an error of Node, its libraries or PostgreSQL, such as `ENOENT`; undefined if it has none. */
export const errorCode = (error: unknown): string | undefined =>
  error instanceof Error && "code" in error && typeof error.code === "string" ? error.code : undefined

/** Whether a process has this id. `EPERM` means that it belongs to another user. */
export const isProcessAlive = (pid: number): boolean => {
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return errorCode(error) === "EPERM"
  }
}
