-- Tells every listener that something under this topic has changed. What has changed they read for themselves: an entry
-- that was trimmed before they came costs them a little time and nothing else.
local function tell(news_key, topic)
  redis.call('XADD', news_key, 'MAXLEN', '~', 1000, '*', 'topic', topic, 'about', '')
end
