-- What the hourly look at payments asks for: the open ones by when they were begun.
CREATE INDEX payments_open ON payments (created_at) WHERE status = 'open';
