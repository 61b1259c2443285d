// OpenCode's events -> Foreword's worker; what it remembers -> OpenCode's requests.
const SOCKET = __SOCKET__
const HOOK = __HOOK__

export const Foreword = async () => ({})
