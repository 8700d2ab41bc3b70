import { normalizeDatabaseUrl } from "../../../src/services/sql/DatabaseUrl.ts"
import { assert, describe, it } from "../../harness/It.ts"

describe("a database's URL", () => {
  it.each([
    ["postgres://user:secret@db.internal:5432/gateway?sslmode=verify-full"],
    ["postgresql://user@db.internal/gateway"],
    ["postgres:///gateway?host=/run/postgresql"],
    ["postgres://user:secret@localhost/gateway?host=/run/postgresql&application_name=a@b"],
    ["postgres://user:p%40ss%2Fw%23rd%3F@[::1]:6432/gateway"],
    ["postgres://%2Frun%2Fpostgresql/gateway"]
  ])("may be %s", (url) => {
    assert.strictEqual(normalizeDatabaseUrl(url), url)
  })

  it.each([
    ["a percent sign", "postgres://u:100%@h/d", "postgres://u:100%25@h/d"],
    ["a percent sign beside escapes", "postgres://u:50%of%2F@h/d", "postgres://u:50%25of%2F@h/d"],
    ["an at sign", "postgres://u:p@ss@h/d", "postgres://u:p%40ss@h/d"],
    ["a space", "postgres://u:two words@h/d", "postgres://u:two%20words@h/d"]
  ])("is read as it was meant if the password has %s", (_, url, meant) => {
    assert.strictEqual(normalizeDatabaseUrl(url), meant)
  })

  it.each([
    ["postgres://u:p@/d?host=/run/postgresql", "postgres://u:p@localhost/d?host=/run/postgresql"],
    ["postgres://u@/d?sslmode=disable&host=/sql/a:b:c", "postgres://u@localhost/d?sslmode=disable&host=/sql/a:b:c"]
  ])("may have the directory of a socket instead of a host: %s", (url, meant) => {
    assert.strictEqual(normalizeDatabaseUrl(url), meant)
  })

  it.each([
    ["another protocol", "mysql://u:secret@h/d"],
    ["no URL", "host=h user=u password=secret"],
    ["a port that is none", "postgres://u:secret@h:port/d"],
    ["a slash in the password", "postgres://u:12/secret@h/d"],
    ["a slash after an at sign in the password", "postgres://u:p@sec/ret@h/d"],
    ["a question mark in the password", "postgres://u:12?secret@h/d"],
    ["a hash in the password", "postgres://u:12#secret@h/d"],
    ["a hash at its end, as a comment of a .env file leaves it", "postgres://u:12#"],
    ["neither a host nor a socket", "postgres://u:secret@/d"],
    ["an at sign and a slash in the password before a socket", "postgres://u:p@/secret@h/d?host=/run/postgresql"],
    ["a password that is no text", "postgres://u:%ff@h/d"]
  ])("is refused if it has %s", (_, url) => {
    assert.isUndefined(normalizeDatabaseUrl(url))
  })
})
