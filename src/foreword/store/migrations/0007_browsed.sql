-- What somebody who looks around sees of all projects, newest first, and may narrow by: read without the memories' texts.
CREATE INDEX memories_newest ON memories (created DESC, status, kind, owner, project, trust, pinned);
