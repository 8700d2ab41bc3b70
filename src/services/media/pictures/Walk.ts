/** A look through a file, step by step. It yields now and then, so that other work gets a turn. */
export type Walk<A> = Generator<void, A>

/** Steps between two turns: a millisecond or so. */
export const breath = 16_384

/** The four letters that name a chunk, as the number that their bytes are: a text for each would cost more than the rest. */
export const tag = (name: string): number => Buffer.from(name, "latin1").readUInt32BE(0)
