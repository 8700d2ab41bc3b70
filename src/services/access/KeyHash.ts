import { hash } from "node:crypto"

/** What is kept of a key, in hexadecimal. A key is 256 random bits, so that a fast hash without salt is enough. */
export const keyHash = (secret: string): string => hash("sha256", secret, "hex")
