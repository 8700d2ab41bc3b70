import { gunzipSync } from "node:zlib"

/** A second of a grey square, 32 by 32 pixels, in H.264 at 24 frames a second. */
const clip = gunzipSync(
  Buffer.from(
    [
      "H4sIAAAAAAACA2NgYFBIK6ksyCzOz2VgYGIA0UBslFiWbJhbYGIIFLuTm59fxsDAkJNblpHCgAKYX4AxIwMIIQAjqip0vgMDXsAERBklRYnZQHZM",
      "STbYTmZM00B247cHq70KUMzAxJKbkpkI4uWmoPvLAIxDj4A5uhkpOUUwmbLMlFRklWFAfr5HYl5KTipIDeP63My8NCBDpCwXbCiyE1RSIHIyKUWp",
      "aUhO5CktylGAsBnzi0uScoDs6cUlxSlIatpBEYLDmyAPKTB4AGkPnCrQgcT//0BSDmiqM6PTAbn/DxnY04H0LdW/jAwsGedsGoCywsn5OUV5yTkV",
      "DGxgCNJWXFJSjGSJBDi6gN4FOhdZHIRlgGLJaGISULoEKFeF7BwGBjYBIM1BQwx0Y3I+wj3MLEA7L+SmJJYAaZ7UjpYFF1JGwYACXobRMBiNgdEY",
      "GAUDCUBVH4vjLKVuCO0EpZOgdBOUXgSlD0HpRxB6NhOUhuqfDdU/G6p/NlT/bKj+2VD9s6H6Z0H1k2E/ABaLGBrMCQAA"
    ].join(""),
    "base64"
  )
)

/** A box that players pass over. */
const free = (text: string): Buffer => {
  const content = Buffer.from(text)
  const frame = Buffer.from("\0\0\0\0free", "latin1")
  frame.writeUInt32BE(frame.length + content.length)
  return Buffer.concat([frame, content])
}

/** A whole MP4 of a few kilobytes, and a note that makes it a file of its own. */
export const tinyClip = (note: string): Buffer => Buffer.concat([clip, free(note)])
