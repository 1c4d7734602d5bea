/** The only path at which an upgrade to a WebSocket is accepted. */
export const realtimePath = "/api/realtime"
