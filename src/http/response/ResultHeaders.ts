export const resultHeaders = ({ replayed, sandbox }: { readonly replayed: boolean; readonly sandbox: boolean }) => ({
  ...(sandbox ? { "x-gateway-sandbox": "true" } : {}),
  ...(replayed ? { "idempotency-replayed": "true" } : {})
})
